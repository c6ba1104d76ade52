/** The number of rows of the table below that take about a megabyte. */
export const ROWS_PER_MEGABYTE = 3_500;

export const TABLE = `create table public.orders (
  id bigint primary key, customer int, at timestamptz, status text, price numeric(10, 2), note text, data jsonb)`;

export const fill = (rows: number) => `
  insert into public.orders
  select n, n % 5000, now() - n * interval '1 minute', 'new', n % 1000 / 7.0, md5(n::text) || repeat(' word ' || n % 97, 12),
    jsonb_build_object('number', n, 'hash', md5((n * 7)::text))
  from generate_series(1, ${rows}) as n`;
