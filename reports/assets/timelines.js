'use strict';
(() => {
  const GAP = 65535;
  const FAR = 65534;
  const CLICKED = 240;  // readings that a click on the heat map shows
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
        const folded = planes[at + i] + (planes[half + at + i] << 8);
        code = (code + ((folded >>> 1) ^ -(folded & 1))) & 0xffff;
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
    const said = place.querySelector('output');
    told.names.forEach((name, i) => pick.append(new Option(name, i)));
    const colour = (name) => getComputedStyle(place).getPropertyValue(name).trim();
    const canvas = place.querySelector('.plot');
    // A wide map and a narrow one; the page shows one of them.
    const maps = Array.from(place.parentElement.querySelectorAll('.heat'));
    const [from, to] = [Number(maps[0].dataset.start), Number(maps[0].dataset.stop)];
    // What is zoomed into, framed on the heat map.
    const framed = maps.map((map) => {
      const frame = document.createElementNS('http://www.w3.org/2000/svg', 'rect');
      frame.setAttribute('class', 'frame');
      map.after(frame);
      return [frame, ...['x', 'y', 'width', 'height'].map((name) => Number(map.getAttribute(name)))];
    });
    const tell = (least, most) => {
      framed.forEach(([frame, left, top, width, height]) => {
        const line = height / count;
        const across = (t) => left + width * Math.min(1, Math.max(0, (t - from) / (to - from)));
        const box = { x: across(least), y: top + Number(pick.value) * line, width: across(most) - across(least), height: line };
        Object.entries(box).forEach(([name, value]) => frame.setAttribute(name, value));
      });
      const text = (t) => t.toFixed(Math.max(0, Math.ceil(-Math.log10(told.width))));
      place.dataset.range = `${least} ${most}`;
      said.textContent = `${text(least)} to ${text(most)} s: ${told.shown}`;
    };
    let plot;
    const draw = (range = [from, to]) => {
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
        width: canvas.clientWidth, height: 180, series, bands, axes: [axis, axis],
        scales: { x: { time: false, min: range[0], max: range[1] } }, cursor: { drag: { x: true, y: false } },
        hooks: { setScale: [(drawn, key) => { if (key === 'x') tell(drawn.scales.x.min, drawn.scales.x.max); }] },
      }, data, canvas);
      place.dataset.drawn = told.names[at];
    };
    pick.addEventListener('change', () => draw(place.dataset.range.split(' ').map(Number)));
    addEventListener('resize', () => plot.setSize({ width: canvas.clientWidth, height: 180 }));
    // A click on the heat map opens its line around that moment.
    maps.forEach((map) => map.addEventListener('click', (event) => {
      const box = map.getBoundingClientRect();
      const at = Math.floor((event.clientY - box.top) / box.height * count);
      pick.value = Math.max(0, Math.min(count - 1, at));
      const wide = Math.min((to - from) / 4, CLICKED * told.width);
      const middle = from + (to - from) * (event.clientX - box.left) / box.width;
      const least = Math.max(from, Math.min(to - wide, middle - wide / 2));
      draw([least, least + wide]);
    }));
    // The same from the keyboard: arrows move, plus and minus zoom about the middle, zero shows all.
    const ZOOM = 1.5;
    const keys = { ArrowLeft: [1, -0.2], ArrowRight: [1, 0.2], '+': [1 / ZOOM, 0], '=': [1 / ZOOM, 0], '-': [ZOOM, 0], 0: [Infinity, 0] };
    canvas.addEventListener('keydown', (event) => {
      if (!(event.key in keys) || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      const [factor, shift] = keys[event.key];
      const { min, max } = plot.scales.x;
      const wide = Math.min(to - from, Math.max(2 * told.width, (max - min) * factor));
      const middle = (min + max) / 2 + shift * (max - min);
      const least = Math.max(from, Math.min(to - wide, middle - wide / 2));
      plot.setScale('x', { min: least, max: least + wide });
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
