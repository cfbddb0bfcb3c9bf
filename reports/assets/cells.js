'use strict';
(() => {
  // Cells: one set of filters for all that a page shows of them, and a panel for each.
  const { every, fold, show, options } = window.bakeoff;
  const told = JSON.parse(document.getElementById('cells-data').textContent);
  const ids = Object.keys(told.cells);
  const nameOf = (id) => told.cells[id][0];
  const make = (name, text, attributes = {}) => {
    const made = document.createElement(name);
    if (text !== undefined) made.textContent = text;
    Object.entries(attributes).forEach(([key, value]) => made.setAttribute(key, value));
    return made;
  };

  // Filters: only factors that have several values.
  const bar = document.getElementById('filters');
  const picks = told.factors.flatMap(([title, values], at) => {
    if (values.length < 2 || ids.length < 4) return [];
    const label = make('label', `${title} `);
    const pick = make('select');
    pick.append(new Option('all', ''));
    options(pick, values);
    label.append(pick);
    bar.append(label);
    return [{ pick, at, values }];
  });
  const out = make('output');
  const clear = make('button', 'All cells', { type: 'button' });
  clear.hidden = true;
  if (picks.length) bar.append(out, clear); else bar.remove();
  // A row is of the cell that it is the place of, or that its name leads to.
  every('tr[id^="cell-"]').forEach((row) => { row.dataset.cell = row.id; });
  every('tr:not([data-cell]) a[href^="#cell-"]').forEach((link) => { link.closest('tr').dataset.cell = link.hash.slice(1); });
  // Or that is called as its first column says, in full or without its workload.
  const called = new Map();
  ids.forEach((id) => called.set(nameOf(id), called.has(nameOf(id)) ? undefined : id));
  const headed = (one) => one.closest('figure')?.querySelector('h3')?.textContent;
  every('table.grid').forEach((table) => {
    const heads = Array.from(table.tHead.rows[0].cells);
    const at = heads.findIndex((head) => head.dataset.key === 'cell' && head.textContent === 'cell');
    const of = heads.findIndex((head) => head.dataset.key === 'workload');
    if (at < 0) return;
    Array.from(table.tBodies[0].rows).filter((row) => !row.dataset.cell).forEach((row) => {
      const name = row.cells[at].textContent;
      const id = called.get(name) ?? called.get(`${row.cells[of]?.textContent ?? headed(table)} · ${name}`);
      if (id) row.dataset.cell = id;
    });
  });
  const tables = new Map();
  every('tr[data-cell]').forEach((row) => {
    const table = row.closest('table');
    if (!tables.has(table)) tables.set(table, []);
    tables.get(table).push(row);
  });
  const filter = () => {
    const chosen = picks.filter(({ pick }) => pick.value);
    const left = new Set(ids.filter((id) => chosen.every(({ pick, at, values }) =>
      values[told.cells[id][at + 1]] === pick.value)));
    tables.forEach((rows, table) => {
      rows.forEach((row) => show(row, 'cells', !left.has(row.dataset.cell)));
      fold(table);
      table.closest('section.ranking')?.toggleAttribute('hidden', !rows.some((row) => left.has(row.dataset.cell)));
    });
    // What is chosen is seen, also where only folded rankings have it.
    const rankings = every('section.ranking:not([hidden])');
    if (rankings.length && rankings.every((one) => one.firstElementChild.matches('.whole:not([open])'))) rankings[0].firstElementChild.open = true;
    const gone = new Set(ids.filter((id) => !left.has(id)).map(nameOf));
    window.bakeoff.choose((at) => left.has(ids[at]), (at) => nameOf(ids[at]));
    every('[data-bar]').forEach((shape) => shape.classList.toggle('faint',
      gone.has(shape.dataset.bar) || gone.has(`${headed(shape)} · ${shape.dataset.bar}`)));
    clear.hidden = left.size === ids.length;
    out.textContent = left.size === ids.length ? '' : `${left.size} of ${ids.length} cells`;
  };
  picks.forEach(({ pick }) => pick.addEventListener('change', filter));
  clear.addEventListener('click', () => {
    picks.forEach(({ pick }) => { pick.value = ''; });
    filter();
    picks[0].pick.focus();
  });

  // The panel of a cell: all that the page says of it, found by its anchor or by its name.
  const dialog = make('dialog', undefined, { 'aria-labelledby': 'panel-title', class: 'panel' });
  document.body.append(dialog);
  const UNKNOWN = new Set(['–', '']);
  const heads = (row) => Array.from(row.closest('table').tHead.rows[0].cells, (cell) => cell.textContent.trim());
  const words = (cell) => cell.textContent.replace(/\s+/g, ' ').trim();
  const facts = (row) => heads(row).map((head, at) => [head, words(row.cells[at])])
    .filter(([head, text]) => head && head !== 'drawn' && !UNKNOWN.has(text));
  const list = (pairs) => {
    const made = make('dl', undefined, { class: 'facts' });
    pairs.forEach(([key, value]) => {
      const line = make('div');
      line.append(make('dt', key), make('dd', value));
      made.append(line);
    });
    return made;
  };
  const rowsOf = (section, id) => every('.grid tbody tr', section).filter((row) => row.dataset.cell === id ||
    (!row.dataset.cell && Array.from(row.cells).slice(0, 3).some((cell) => words(cell) === nameOf(id))));
  const place = (id) => document.getElementById(id);
  const ranked = (id) => every('.ranking tr[data-cell]').find((row) => row.dataset.cell === id);
  const rank = (id) => {
    const row = ranked(id);
    if (!row) return list([['rate', 'no trial gave a number that counts']]);
    const why = [['.mark', 'equivalence'], ['.word', 'why']].map(([at, head]) => [head, row.querySelector(at)?.title]);
    return list([...facts(row).slice(1), ...why.filter(([, text]) => text)]);
  };
  const copied = (table, texts, label) => {
    const made = make('table', undefined, { class: 'grid' });
    const top = made.createTHead().insertRow();
    const kept = table[0].map((_, at) => at).filter((at) => texts.some((row) => !UNKNOWN.has(row[at])));
    kept.forEach((at) => top.append(make('th', table[0][at], { scope: 'col' })));
    const body = made.createTBody();
    texts.forEach((row) => {
      const line = body.insertRow();
      kept.forEach((at) => line.append(make('td', row[at], row[at]?.length > 40 ? { class: 'long' } : {})));
    });
    const scroll = make('div', undefined, { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': label });
    scroll.append(made);
    return scroll;
  };
  const titled = (section) => {
    const head = make('h3');
    head.append(make('a', section.querySelector('h2').textContent, { href: `#${section.id}` }));
    return head;
  };
  const command = (text) => {
    const made = make('pre', text, { tabindex: '0' });
    return made;
  };
  const quoted = (text) => /^[\w.@:+=/-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
  const runOf = (id) => told.runs[told.runs.length > 1 ? Number(id.split('-')[1]) - 1 : 0];
  const narrowed = (id) => told.factors.map(([, , only], at) => only[told.cells[id][at + 1]]).filter(Boolean)
    .map((text) => ` --only ${quoted(text)}`).join('');
  const partner = (id) => {
    const label = make('label', 'Beside another cell ');
    const pick = make('select');
    pick.append(new Option('…', ''));
    ids.filter((other) => other !== id).forEach((other) => pick.append(new Option(nameOf(other), other)));
    pick.addEventListener('change', () => { location.hash = `${id}~${pick.value}`; });
    label.append(pick);
    return label;
  };
  // A row as Markdown, for an issue or a message; shown where the browser keeps no clipboard.
  const markdown = (row) => {
    const pairs = facts(row).map((pair) => pair.map((text) => text.replaceAll('|', '\\|')));
    return [pairs.map(([head]) => head), pairs.map(() => '---'), pairs.map(([, text]) => text)].map((line) => `| ${line.join(' | ')} |`).join('\n');
  };
  const copy = (id) => {
    if (!place(id)) return [];
    const button = make('button', 'Copy as Markdown', { type: 'button' });
    const told = make('span', '', { role: 'status' });
    button.addEventListener('click', () => {
      const text = markdown(place(id));
      (navigator.clipboard?.writeText(text) ?? Promise.reject()).then(
        () => { told.textContent = ' copied'; },
        () => { button.parentElement.after(command(text)); },
      );
    });
    const line = make('p', undefined, { class: 'tools' });
    line.append(button, told);
    return [line];
  };
  const again = (id) => {
    const [, start] = runOf(id);
    return start ? [make('h3', 'Run it again'), command(start + narrowed(id))] : [];
  };
  const alone = (id) => {
    const parts = [rank(id), ...copy(id), partner(id)];
    every('main section[id]').filter((section) => section.id !== 'ranking').forEach((section) => {
      const own = rowsOf(section, id);
      const said = every('dt', section).filter((term) => words(term) === nameOf(id)).map((term) => [nameOf(id), words(term.nextElementSibling)]);
      if (own.length || said.length) parts.push(titled(section));
      if (said.length) parts.push(list(said));
      if (own.length === 1) parts.push(list(facts(own[0])));
      if (own.length > 1) {
        const byTable = Map.groupBy ? Map.groupBy(own, (row) => row.closest('table')) : new Map([[own[0].closest('table'), own]]);
        byTable.forEach((rows) => parts.push(copied([heads(rows[0])], rows.map((row) => Array.from(row.cells, words)), rows[0].closest('table').caption.textContent)));
      }
    });
    const raw = place(id)?.querySelector('a[href]:not([href^="#"])');
    if (raw) parts.push(make('h3', 'Raw data'), make('a', words(raw), { href: raw.getAttribute('href') }));
    return [nameOf(id), [...parts, ...again(id)]];
  };

  // Two cells: how they compare, in what they differ, and where the page says why.
  const answers = (id) => Object.fromEntries(ranked(id) ? facts(ranked(id)) : []);
  const verdict = (one, two) => {
    const [a, b] = [answers(one), answers(two)];
    const said = (x, y, xs, ys) => ys.answer === 'reference' && xs['× reference'] &&
      `${nameOf(x)} is ${xs['× reference']} × as fast as ${nameOf(y)} ${xs['its interval'] || ''}: ${xs.answer.replace(/^[▲▼=] /, '')}.`;
    const both = () => `Each was compared with the reference: ${nameOf(one)} ${a['× reference'] || '–'} × ${a['its interval'] || ''}, ` +
      `${nameOf(two)} ${b['× reference'] || '–'} × ${b['its interval'] || ''}.`;
    const neither = 'They were not compared with each other: the rates below have their own intervals.';
    return said(one, two, a, b) || said(two, one, b, a) || (a['× reference'] && b['× reference'] ? both() : neither);
  };
  const pair = (one, two) => {
    const [a, b] = [one, two].map((id) => new Map(place(id) ? facts(place(id)) : []));
    const differing = [...new Set([...a.keys(), ...b.keys()])].filter((key) => !key.startsWith('raw data') && a.get(key) !== b.get(key))
      .map((key) => [key, a.get(key) || '–', b.get(key) || '–']);
    const parts = [make('p', verdict(one, two)), make('h3', 'In what they differ'), copied([['', nameOf(one), nameOf(two)]], differing, 'In what they differ'), make('h3', 'Why')];
    const names = [nameOf(one), nameOf(two)];
    const why = every('#why h3').find((head) => [names, [...names].reverse()].some(([x, y]) => words(head) === `${x} and ${y}`));
    if (why) {
      why.id ||= `why-${one}-${two}`;
      for (let next = why.nextElementSibling; next && next.localName !== 'h3'; next = next.nextElementSibling) {
        if (next.localName === 'p') parts.push(make('p', words(next)));
      }
      parts.push(make('a', 'Part by part, with intervals', { href: `#${why.id}` }));
    } else if (runOf(one) === runOf(two)) {
      parts.push(make('p', 'Layer by layer, with intervals, where both cells’ steps were traced:'),
        command(`bakeoff explain ${quoted(`runs/${runOf(one)[0]}`)} ${names.map(quoted).join(' ')}`));
    } else {
      parts.push(make('p', 'They are of two runs: “What differs between the machines” lists what is not the same.'));
    }
    const links = make('p');
    links.append(make('a', nameOf(one), { href: `#${one}` }), ' · ', make('a', nameOf(two), { href: `#${two}` }));
    return [`${names[0]} and ${names[1]}`, [...parts, links]];
  };

  const open = () => {
    const [one, two] = decodeURIComponent(location.hash.slice(1)).split('~');
    if (!(one in told.cells)) { if (dialog.open) dialog.close(); return; }
    const [title, parts] = two in told.cells ? pair(one, two) : alone(one);
    const close = make('button', 'Close', { type: 'button', class: 'close' });
    close.addEventListener('click', () => dialog.close());
    dialog.replaceChildren(close, make('h2', title, { id: 'panel-title' }), ...parts);
    if (!dialog.open) dialog.showModal();
    dialog.scrollTop = 0;
  };
  let from;
  document.addEventListener('click', (event) => {
    const link = event.target.closest?.('a[href^="#cell-"]');
    if (link && !dialog.contains(link)) from = link;
  });
  dialog.addEventListener('close', () => {
    if (location.hash.startsWith('#cell-')) history.replaceState(null, '', location.pathname + location.search);
    from?.focus();
  });
  addEventListener('hashchange', open);
  open();

  // The line that stays at the top carries the answer once its own place is out of sight.
  const contents = document.getElementById('contents');
  new IntersectionObserver(([seen]) => contents.classList.toggle('stuck', !seen.isIntersecting && seen.boundingClientRect.top < 0))
    .observe(document.querySelector('.answer'));
  // What a link leads to stands below that line, however high it is.
  new ResizeObserver(() => document.documentElement.style.setProperty('--stuck', `${contents.offsetHeight}px`)).observe(contents);
})();
