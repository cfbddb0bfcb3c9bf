'use strict';
(() => {
  const GAP = 65535;
  const FAR = 65534;
  const unpack = async (told) => {
    const raw = Uint8Array.from(atob(told.data), (c) => c.charCodeAt(0));
    const stream = new Blob([raw]).stream().pipeThrough(new DecompressionStream('gzip'));
    const planes = new Uint8Array(await new Response(stream).arrayBuffer());
    const half = planes.length / 2;
    const bins = told.bins;
    const rows = [];
    let far = 0;
    for (let at = 0; at < half; at += bins) {
      const [low, quantum] = told.rows[rows.length];
      const row = new Array(bins);
      let code = 0;
      for (let i = 0; i < bins; i += 1) {
        code = (code + planes[at + i] + (planes[half + at + i] << 8)) & 0xffff;
        if (code === GAP) row[i] = null;
        else if (code === FAR) { row[i] = told.far[far]; far += 1; } else row[i] = low + code * quantum;
      }
      rows.push(row);
    }
    return rows;
  };

  const open = async (place) => {
    const told = JSON.parse(document.getElementById(place.dataset.packed).textContent);
    const rows = await unpack(told);
    const count = told.names.length;
    const times = Array.from({ length: told.bins }, (_, i) => told.start + (i + 0.5) * told.width);
    const pick = place.querySelector('select');
    told.names.forEach((name, i) => pick.append(new Option(name, i)));
    const colour = (name) => getComputedStyle(place).getPropertyValue(name).trim();
    const canvas = place.querySelector('.plot');
    let plot;
    const draw = () => {
      const at = Number(pick.value);
      const data = [times, rows[at]];
      const series = [{ label: 's' }, { label: told.unit, stroke: colour('--accent'), width: 1.25 }];
      const bands = [];
      if (told.kinds === 3) {
        data.push(rows[count + at], rows[2 * count + at]);
        series.push({ label: 'least', stroke: 'transparent' }, { label: 'most', stroke: 'transparent' });
        bands.push({ series: [3, 2], fill: `${colour('--accent')}33` });
      }
      const axis = { stroke: colour('--soft'), grid: { stroke: colour('--hair') }, ticks: { stroke: colour('--line') } };
      if (plot) plot.destroy();
      plot = new uPlot({
        width: canvas.clientWidth, height: 220, series, bands, axes: [axis, axis],
        scales: { x: { time: false } }, cursor: { drag: { x: true, y: false } },
      }, data, canvas);
      place.dataset.drawn = told.names[at];
    };
    pick.addEventListener('change', draw);
    addEventListener('resize', () => plot.setSize({ width: canvas.clientWidth, height: 220 }));
    // A click on the heat map opens its line.
    const map = place.parentElement.querySelector('.heat');
    map.addEventListener('click', (event) => {
      const box = map.getBoundingClientRect();
      const at = Math.floor((event.clientY - box.top) / box.height * count);
      pick.value = Math.max(0, Math.min(count - 1, at));
      draw();
    });
    place.querySelector('.picker').hidden = false;
    draw();
  };

  const seen = new IntersectionObserver((entries) => entries.forEach((entry) => {
    if (!entry.isIntersecting) return;
    seen.unobserve(entry.target);
    open(entry.target);
  }), { rootMargin: '200px' });
  document.querySelectorAll('[data-packed]').forEach((place) => seen.observe(place));
})();
