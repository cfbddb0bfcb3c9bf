'use strict';
(() => {
  const root = document.documentElement;
  root.classList.add('scripted');
  const every = (what, from = document) => Array.from(from.querySelectorAll(what));
  const named = (kind, name) => every(kind).find((e) => e.dataset.name === name);

  const save = (name, type, text) => {
    const link = document.createElement('a');
    link.href = URL.createObjectURL(new Blob([text], { type }));
    link.download = name.replace(/[^\w.-]+/g, '-');
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  };

  // Colours: as the system, light, dark, round and round.
  const themes = ['', 'light', 'dark'];
  const button = document.getElementById('theme');
  let theme = '';
  try { theme = localStorage.getItem('bakeoff-theme') || ''; } catch { /* a file may have no store */ }
  const paint = () => {
    if (theme) root.dataset.theme = theme; else delete root.dataset.theme;
    button.setAttribute('aria-label', `Colours: ${theme || 'as the system'}`);
    button.title = button.getAttribute('aria-label');
  };
  button.addEventListener('click', () => {
    theme = themes[(themes.indexOf(theme) + 1) % themes.length];
    try { localStorage.setItem('bakeoff-theme', theme); } catch { /* as above */ }
    paint();
  });
  // Reports that are open side by side change together.
  window.addEventListener('storage', ({ key, newValue }) => {
    if (key === 'bakeoff-theme' && themes.includes(newValue)) { theme = newValue; paint(); }
  });
  if (!themes.includes(theme)) theme = '';
  paint();

  // A cell's number: the text itself unless it is rounded; unknown is undefined.
  const number = (cell) => {
    const found = Number(cell.dataset.v ?? (cell.textContent || NaN));
    return Number.isNaN(found) ? undefined : found;
  };

  // Long tables show their first rows; which those are changes with the order and the filters.
  const FIRST = 10;
  const fold = (table) => {
    const more = (table.closest('.scroll') || table).nextElementSibling;
    if (!more?.matches('.more')) return;
    const rows = Array.from(table.tBodies[0].rows).filter((row) => !row.hidden);
    rows.forEach((row, at) => row.classList.toggle('rest', at >= FIRST));
    more.hidden = rows.length <= FIRST;
    more.querySelector('span').textContent = rows.length - FIRST;
  };

  // Where cells stand below each other each has its heading; a page brings those of the first rows.
  every('.grid.stacked tr.rest td').forEach((cell) => {
    cell.dataset.head = cell.closest('table').tHead.rows[0].cells[cell.cellIndex].textContent;
  });

  // Sorting: unknown goes last in both directions.
  const sorter = (table) => every('thead th', table).forEach((head, at) => {
    const click = document.createElement('button');
    click.type = 'button';
    click.textContent = head.textContent;
    head.replaceChildren(click);
    click.addEventListener('click', () => {
      const down = head.getAttribute('aria-sort') === 'ascending';
      every('thead th', table).forEach((other) => other.removeAttribute('aria-sort'));
      head.setAttribute('aria-sort', down ? 'descending' : 'ascending');
      const body = table.tBodies[0];
      const numeric = head.classList.contains('n');
      const key = (row) => numeric ? number(row.cells[at]) : row.cells[at].textContent;
      const rows = Array.from(body.rows).map((row) => [key(row), row]);
      rows.sort(([a], [b]) => {
        if (numeric && (a === undefined || b === undefined)) return (a === undefined) - (b === undefined);
        const order = numeric ? a - b : a.localeCompare(b, 'en', { numeric: true });
        return down ? -order : order;
      });
      body.append(...rows.map(([, row]) => row));
      fold(table);
    });
  });
  every('table.grid').forEach(sorter);

  // Filters of one table: the values a column takes, all of them to begin with. What a filter of all
  // cells hides as well is in the row's own mark.
  const hides = new Map();
  const show = (row, by, isHidden) => {
    const reasons = hides.get(row) || new Set();
    hides.set(row, reasons);
    reasons[isHidden ? 'add' : 'delete'](by);
    row.hidden = reasons.size > 0;
  };
  const options = (pick, values) => Array.from(values).sort((a, b) => a.localeCompare(b, 'en', { numeric: true }))
    .forEach((value) => pick.append(new Option(value, value)));
  every('.sheet .filters').forEach((group) => {
    const table = group.parentElement.querySelector('table');
    const rows = Array.from(table.tBodies[0].rows);
    const picks = every('select', group);
    const choose = () => {
      rows.forEach((row) => show(row, 'own',
        picks.some((p) => p.value && row.cells[p.dataset.column].textContent !== p.value)));
      const left = rows.filter((row) => !row.hidden).length;
      group.querySelector('output').textContent = left === rows.length ? '' : `${left} of ${rows.length} rows`;
      fold(table);
    };
    picks.forEach((pick) => {
      options(pick, new Set(rows.map((row) => row.cells[pick.dataset.column].textContent)));
      pick.addEventListener('change', choose);
    });
  });

  // Dots: on one axis of rates, or each cell around its own.
  const PLACES = { circle: ['cx'], text: ['x'], rect: ['x', 'width'], line: ['x1', 'x2'] };
  every('[data-relative]').forEach((b) => b.addEventListener('click', () => {
    b.setAttribute('aria-pressed', String(b.getAttribute('aria-pressed') === 'false'));
    every('[data-other]', b.parentElement.previousElementSibling).forEach((shape) => {
      const places = PLACES[shape.localName];
      const other = shape.dataset.other;
      shape.dataset.other = places ? places.map((name) => shape.getAttribute(name)).join(' ') : shape.textContent;
      if (places) other.split(' ').forEach((value, i) => shape.setAttribute(places[i], value));
      else shape.textContent = other;
    });
  }));

  // Downloads.
  const quote = (text) => /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  const words = (cell) => cell.dataset.v || cell.textContent.replace(/\s+/g, ' ').trim();
  const csv = (table) => every('tr', table).filter((row) => !row.hidden)
    .map((row) => Array.from(row.cells).filter((c) => !c.hidden && !c.classList.contains('bar'))
      .map((c) => quote(c.dataset.key || words(c))).join(',')).join('\r\n') + '\r\n';
  every('[data-csv]').forEach((b) => b.addEventListener('click', () =>
    save(`${b.dataset.csv}.csv`, 'text/csv', csv(named('table', b.dataset.csv)))));

  const SVG = 'http://www.w3.org/2000/svg';
  const make = (name, attributes, text) => {
    const made = document.createElementNS(SVG, name);
    Object.entries(attributes).forEach(([key, value]) => made.setAttribute(key, value));
    if (text !== undefined) made.textContent = text;
    return made;
  };
  // A picture on its own has its colours in its shapes: not every program reads style sheets.
  const inline = (svg) => {
    const [light, ...rules] = document.getElementById('chart-style').sheet.cssRules;
    const plain = (value) => value.trim().replace(/var\((--\w+)\)/g, (_, name) => light.style.getPropertyValue(name).trim());
    rules.forEach((rule) => every(rule.selectorText.replace('.chart ', ''), svg).forEach((shape) =>
      Array.from(rule.style).forEach((name) => shape.setAttribute(name, plain(rule.style.getPropertyValue(name))))));
    svg.setAttribute('font-family', light.style.getPropertyValue('font-family'));
  };
  const finish = (svg) => {
    const { x, y, width, height } = svg.viewBox.baseVal;
    every('[hidden]', svg).forEach((shape) => shape.remove());
    Object.entries({ xmlns: SVG, width, height }).forEach(([key, value]) => svg.setAttribute(key, value));
    inline(svg);
    svg.prepend(make('rect', { x, y, width, height, fill: '#fff' }));
    // What a program printed may hold characters that XML does not allow.
    return new XMLSerializer().serializeToString(svg).replace(/[^\t\n\r\x20-\ufffd]/g, '\ufffd');
  };
  // A ranking is a table with drawn cells; as a picture it needs its words and headings beside the bars.
  const DRAWN = 440;
  const bars = (table) => {
    const rows = [table.tHead.rows[0], ...table.tBodies[0].rows].map((row) => Array.from(row.cells));
    const pen = document.createElement('canvas').getContext('2d');
    pen.font = `12px ${getComputedStyle(document.querySelector('.chart')).fontFamily}`;
    const svg = make('svg', { class: 'chart' });
    let left = 0;
    rows[0].forEach((head, column) => {
      const drawn = head.classList.contains('bar');
      const wide = drawn ? DRAWN : Math.ceil(Math.max(...rows.map((row) => pen.measureText(words(row[column])).width)));
      const write = (text, share, top) => text && svg.append(make('text', { x: left + share * wide, y: top + 15, 'text-anchor': ['start', 'middle', 'end'][2 * share] }, text));
      rows.forEach((row, i) => {
        const cell = row[column];
        if (!drawn) write(words(cell), head.classList.contains('n') ? 1 : 0, i * 30 + 20);
        every('.ends span', cell).forEach((end, at) => write(words(end), at / 2, i * 30 + 20));
        const picture = cell.querySelector('svg');
        if (!drawn || !picture) return;
        const group = make('g', { transform: `translate(${left} ${i * 30 + 20})` });
        group.append(...picture.cloneNode(true).childNodes);
        every('circle', group).forEach((dot) => Object.entries({ cy: 12, r: 4 }).forEach(([key, value]) => dot.setAttribute(key, value)));
        every('*', group).forEach((shape) => Array.from(shape.attributes).forEach(({ name, value }) =>
          value.endsWith('%') && shape.setAttribute(name, (parseFloat(value) / 100 * DRAWN).toFixed(1))));
        svg.append(group);
      });
      left += wide + 18;
    });
    svg.prepend(make('text', { x: 0, y: 14 }, table.caption.textContent));
    svg.setAttribute('viewBox', `-8 -8 ${left + 16} ${rows.length * 30 + 36}`);
    return finish(svg);
  };
  every('[data-bars]').forEach((b) => b.addEventListener('click', () =>
    save(`${b.dataset.bars}.svg`, 'image/svg+xml', bars(named('table', b.dataset.bars)))));
  every('[data-svg]').forEach((b) => b.addEventListener('click', () =>
    save(`${b.dataset.svg}.svg`, 'image/svg+xml', finish(named('svg', b.dataset.svg).cloneNode(true)))));

  window.bakeoff = { every, fold, show, options, save, make };
  // A link to what is folded unfolds it, also the second time.
  const reveal = (hash) => {
    const target = document.getElementById(decodeURIComponent(hash.slice(1)));
    const fold = target?.querySelector(':scope > .whole') ?? target?.closest('.whole');
    if (fold) fold.open = true;
  };
  document.addEventListener('click', (event) => reveal(event.target.closest?.('a[href^="#"]')?.hash ?? ''));
  addEventListener('hashchange', () => reveal(location.hash));
  reveal(location.hash);

  // Paper has more unfolded than the screen, before and after.
  let printed = [];
  addEventListener('beforeprint', () => {
    printed = every('details.opens:not([open])');
    printed.forEach((d) => { d.open = true; });
  });
  addEventListener('afterprint', () => printed.forEach((d) => { d.open = false; }));
})();
