// Pages that are read from files cannot fetch each other. The search asks for pages to show excerpts of them: it gets
// the texts of page_texts.js instead.
if (location.protocol === "file:") {
  const fetched = window.fetch;
  window.fetch = (url, ...options) => {
    const page = String(url).replace(/^\.\//, "").replace(/\.html$/, "");
    if (!(page in window.PAGE_TEXTS)) return fetched(url, ...options);
    const main = document.createElement("div");
    main.setAttribute("role", "main");
    main.textContent = window.PAGE_TEXTS[page];
    return Promise.resolve({ text: () => Promise.resolve(main.outerHTML) });
  };
}
