'use strict';
(() => {
  // Columns of wide tables: each can be hidden; what a table saves as CSV is what it shows.
  const { every } = window.bakeoff;
  const FEWEST = 9;
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
    heads.forEach((head, at) => {
      if (at === 0) return;
      const label = document.createElement('label');
      const box = document.createElement('input');
      box.type = 'checkbox';
      box.checked = true;
      box.addEventListener('change', () => {
        every('tr', table).forEach((row) => { row.cells[at].hidden = !box.checked; });
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
