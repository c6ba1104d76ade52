/** The table allows duplicate numbers, so that duplicate writes are visible. */
export const MARKS = `
  create table public.marks (id bigint generated always as identity primary key, number bigint not null, note text);
  create index on public.marks (number);
  alter table public.marks enable row level security;
  create policy everybody on public.marks using (true) with check (true);
  grant select, insert (number, note) on public.marks to anon, authenticated`;
