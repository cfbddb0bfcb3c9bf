'use strict';
(() => {
  // Columns of wide tables: each can be hidden; what a table saves as CSV is what it shows.
  const { every } = window.bakeoff;
  const FEWEST = 9;
  const isNarrow = matchMedia('(max-width:720px)').matches;
  every('.sheet').forEach((sheet) => {
    const table = sheet.querySelector('table.grid');
    const heads = Array.from(table.tHead.rows[0].cells);
    if (heads.length < FEWEST) return;
    const menu = document.createElement('details');
    menu.className = 'columns';
    const title = document.createElement('summary');
    const count = () => {
      const left = heads.filter((head) => !head.hidden).length;
      title.textContent = left === heads.length ? 'Columns' : `Columns: ${left} of ${heads.length}`;
    };
    const group = document.createElement('div');
    group.setAttribute('role', 'group');
    group.setAttribute('aria-label', 'Columns shown');
    // What stands between a name and its rate says the name again: a telephone begins without.
    const rate = heads.findIndex((head) => head.dataset.key === 'rate');
    const several = (at) => new Set(Array.from(table.tBodies[0].rows, (row) => row.cells[at].textContent)).size > 1;
    const isApart = (at) => ['workload', 'machine', 'run'].includes(heads[at].dataset.key) && several(at);
    const isRepeated = (at) => isNarrow && at < rate && heads[0].dataset.key === 'cell' && !isApart(at);
    heads.forEach((head, at) => {
      if (at === 0) return;
      const label = document.createElement('label');
      const box = document.createElement('input');
      box.type = 'checkbox';
      box.checked = !isRepeated(at);
      const show = () => every('tr', table).forEach((row) => { row.cells[at].hidden = !box.checked; });
      if (!box.checked) show();
      box.addEventListener('change', () => {
        show();
        count();
      });
      label.append(box, ` ${head.textContent}`);
      group.append(label);
    });
    count();
    menu.append(title, group);
    sheet.querySelector('.tools').append(menu);
  });
})();
