'use strict';
(() => {
  // Of many stacked bars a page draws the first; those of the cells that are chosen take their places.
  const { every, make } = window.bakeoff;
  const LETTERS = 50;  // of a line where names stand above their bars
  const broken = (name, most) => {
    const lines = [''];
    name.split(' · ').map((word, at) => (at ? ` · ${word}` : word)).forEach((word) => {
      const isFull = (lines.at(-1) + word).length > LETTERS;
      if (isFull && lines.at(-1) && lines.length < most) lines.push(word); else lines[lines.length - 1] += word;
    });
    return lines.map((line) => line.trim());
  };
  const read = (svg) => {
    const rows = every('[data-bar]', svg).map((group) => {
      const words = every('text', group);
      return { group, rects: every('rect', group), total: words.pop(), names: words };
    });
    const first = rows.flatMap(({ rects }) => rects)[0];
    const wide = ({ rects }) => rects.reduce((sum, rect) => sum + Number(rect.getAttribute('width')), 0);
    return { rows, left: Number(first.getAttribute('x')), room: Math.max(...rows.map(wide)) };
  };
  const fill = ({ rows, left, room }, { parts }, bars) => {
    const length = ([, , ...amounts]) => amounts.reduce((sum, one) => sum + one, 0);
    const longest = Math.max(...bars.map((bar) => length(bar.told)), 0) || 1;
    rows.forEach(({ group, rects, total, names }, at) => {
      group.toggleAttribute('hidden', at >= bars.length);
      if (at >= bars.length) return;
      const { name, told } = bars[at];
      const [, words, ...amounts] = told;
      group.dataset.bar = name;
      const lines = broken(name, names.length);
      names.forEach((text, line) => { text.textContent = lines[line] ?? ''; });
      every('rect', group).forEach((rect) => rect.remove());
      const [y, height] = ['y', 'height'].map((of) => rects[0].getAttribute(of));
      let x = left;
      amounts.forEach((amount, part) => {
        const width = amount / longest * room;
        if (!amount) return;
        const rect = make('rect', { class: `p${part % 8 + 1} part`, x: x.toFixed(1), y, width: width.toFixed(1), height });
        rect.append(make('title', {}, `${parts[part]}: ${(100 * amount / length(told)).toPrecision(2)} % of ${words}`));
        total.before(rect);
        x += width;
      });
      total.setAttribute('x', (x + 8).toFixed(1));
      total.textContent = words;
    });
  };
  const charts = every('[data-bars-of]').map((script) => {
    const told = JSON.parse(script.textContent);
    return { told, drawings: every('svg[role=img]', script.parentElement).map(read) };
  });
  window.bakeoff.choose = (isLeft, nameOf) => charts.forEach(({ told, drawings }) => {
    const under = `${told.under} · `;
    const bars = told.bars.filter(([cell]) => isLeft(cell)).map((bar) => {
      const name = nameOf(bar[0]);
      return { name: name.startsWith(under) ? name.slice(under.length) : name, told: bar };
    });
    drawings.forEach((drawing) => fill(drawing, told, bars.slice(0, drawing.rows.length)));
  });
})();
