#pragma once

namespace widelimit::cli {

/// The style sheet of report.html, for screens and for paper.
inline constexpr const char* page_style = R"(
:root { color-scheme: light; }
* { box-sizing: border-box; }
body { font: 15px/1.5 system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; color: #1d2126; background: #fff;
       max-width: 1120px; margin: 0 auto; padding: 28px 28px 60px; }
h1 { font-size: 26px; margin: 0 0 4px; }
h2 { font-size: 20px; margin: 38px 0 10px; padding-top: 14px; border-top: 2px solid #1f5fa8; }
h3 { font-size: 16px; margin: 24px 0 6px; }
p { margin: 6px 0 10px; max-width: 78ch; }
.small, figcaption { color: #59626d; font-size: 13px; }
.lead { font-size: 17px; }
code { font-family: ui-monospace, "DejaVu Sans Mono", monospace; font-size: .9em; }
pre { background: #f4f6f8; border: 1px solid #dde2e8; border-radius: 6px; padding: 10px 12px; margin: 8px 0;
      white-space: pre-wrap; overflow-wrap: anywhere; }
table { border-collapse: collapse; font-size: 13.5px; font-variant-numeric: tabular-nums; margin: 8px 0; }
.wide { overflow-x: auto; }
th, td { padding: 4px 10px; text-align: right; border-bottom: 1px solid #e3e7ec; white-space: nowrap; }
th { font-weight: 600; border-bottom: 2px solid #b9c2cc; }
th:first-child, td:first-child, td.word, th.word { text-align: left; }
tr.best td { background: #eef5ec; font-weight: 600; }
.figures { display: flex; flex-wrap: wrap; gap: 12px 26px; align-items: flex-start; }
figure { margin: 6px 0; max-width: 100%; }
figcaption { max-width: 500px; }
svg { max-width: 100%; height: auto; display: block; }
svg text { font: 12px system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; fill: #333; }
svg text[fill='#fff'] { fill: #fff; }
svg text.axis { font-size: 12.5px; fill: #222; }
svg text.halo { paint-order: stroke; stroke: #fff; stroke-width: 3px; }
svg .grid { stroke: #e6e9ed; }
svg .border { fill: none; stroke: #9aa4af; }
svg .cell { stroke: #e1e6eb; stroke-width: .6; }
svg .cell.right { stroke: #444; stroke-width: 1; }
svg .layer { stroke: #6b7681; }
svg .repeat { fill: none; stroke: #8b95a0; stroke-dasharray: 5 4; }
svg .flow { fill: none; stroke: #555; stroke-width: 1.3; }
svg .join { fill: #fff; stroke: #555; }
svg text.name { font-size: 13px; font-weight: 600; fill: #222; }
svg text.details { font-size: 10.5px; fill: #555; }
svg text.times { font-weight: 600; }
.cards { display: grid; grid-template-columns: repeat(auto-fill, minmax(180px, 1fr)); gap: 12px; margin: 8px 0 16px; }
.cards.texts { grid-template-columns: repeat(auto-fill, minmax(320px, 1fr)); }
.card { border: 1px solid #dde2e8; border-radius: 8px; padding: 10px; font-size: 13.5px; }
.card img { image-rendering: pixelated; border-radius: 4px; display: block; margin-bottom: 6px; border: 1px solid #ccc; }
.wrong { color: #b3261e; }
.id { font: 12px ui-monospace, "DejaVu Sans Mono", monospace; color: #59626d; overflow-wrap: anywhere; }
blockquote { margin: 0 0 8px; padding: 0 0 0 10px; border-left: 3px solid #cfd6de; font-size: 13px; overflow-wrap: anywhere; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 2px 16px; margin: 8px 0; }
dt { color: #59626d; }
dd { margin: 0; overflow-wrap: anywhere; }
@page { margin: 14mm; }
@media print {
  body { max-width: none; padding: 0; font-size: 11px; }
  h1 { font-size: 20px; } h2 { font-size: 16px; margin-top: 20px; } h3 { font-size: 13px; }
  h2, h3, .before-cards { break-after: avoid; }
  figure, .figures, .card, tr, pre { break-inside: avoid; }
  .wide { overflow: visible; }
  table { font-size: 9.5px; } th, td { padding: 2px 6px; }
  .small, figcaption, .card, blockquote { font-size: 9.5px; } .id { font-size: 8.5px; }
  .figures { display: grid; grid-template-columns: 1fr 1fr; gap: 8px 18px; }
  .figures svg { width: 100%; height: auto; max-height: 85mm; }
  .cards { grid-template-columns: repeat(5, 1fr); gap: 6px; } .cards.texts { grid-template-columns: 1fr 1fr; }
  .card { padding: 6px; } .card img { width: 72px; height: auto; }
  * { -webkit-print-color-adjust: exact; print-color-adjust: exact; }
}
)";

}  // namespace widelimit::cli
