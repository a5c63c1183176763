# gnuplot -c bench/scaling.gp FOLDER: growth.png and roofline.png from the CSV files of bench/scaling.
folder = ARG1
set datafile separator ","
set terminal pngcairo size 1200,720 font ",10"
set grid
set key right bottom
set format "%g"

set output folder."/growth.png"
set multiplot layout 2,3
set logscale xy
growth = folder."/growth.csv"
series(name) = "<grep '^".name."' ".growth

set xlabel "inputs"; set ylabel "seconds of the Gram matrix"
plot for [name in "GAP flatten dense"] series("inputs ".name) using 2:3 with linespoints title name
set xlabel "positions"; set ylabel "seconds a pair"
plot for [name in "GAP flatten attention"] series("positions ".name) using 2:3 with linespoints title name
set xlabel "depth"
plot series("depth GAP") using 2:3 with linespoints title "GAP, 16 x 16"
set xlabel "channels of the inputs"
plot series("channels GAP") using 2:3 with linespoints title "GAP, 16 x 16, depth 8"
unset logscale; set xlabel "threads"; set ylabel "seconds of 32 images"; set yrange [0:*]; set xtics 1
plot series("threads GAP") using 2:3 with linespoints title "GAP, 32 x 32, depth 8"
unset multiplot

set output folder."/roofline.png"
set terminal pngcairo size 800,560 font ",10"
set logscale xy; set xrange [0.05:500]; set yrange [0.5:300]; set xtics auto
set xlabel "operations a byte"; set ylabel "operations a nanosecond, one core"
set key right bottom
limits = folder."/roofline.csv"
limit_of(name) = real(system("grep '^".name.",' ".limits." | cut -d, -f3"))
peak = limit_of("peak"); first = limit_of("L1"); second = limit_of("L2"); memory = limit_of("memory")
roof(x, bandwidth) = bandwidth * x < peak ? bandwidth * x : peak
plot roof(x, first) title "first-level cache", roof(x, second) title "second-level cache", \
     roof(x, memory) title "memory", \
     "<grep -v -e '^peak' -e '^L' -e '^memory' -e '^part' ".limits using 2:3:1 with labels rotate by 45 left point pt 7 offset 0.4,0.6 notitle
