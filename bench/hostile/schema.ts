import { startContent } from "../graphql/content.ts";
import type { Scratch } from "../measuring/scratch.ts";

export const MARKS = 1_000;
/** The number of rooms with members; one more has none. */
export const ROOMS = 5;
/** Both become 9007199254740992 as numbers of JavaScript. */
export const TENANTS = ["9007199254740992", "9007199254740993"] as const;

/**
 * The attacked tables: marks, which honest callers read and write, and of which others see the public ones; essays, long
 * enough for an endless regular expression; documents, of which each tenant sees its own; letters, which members of a room see.
 */
const TABLES = `
  create table public.marks (
    id bigint generated always as identity primary key,
    ref bigint,
    note text not null,
    is_public boolean not null default false
  );
  alter table public.marks enable row level security;
  create policy read_all on public.marks for select to authenticated using (true);
  create policy read_public on public.marks for select to anon using (is_public);
  create policy add on public.marks for insert to authenticated with check (true);
  grant select, insert on public.marks to anon, authenticated;
  insert into public.marks (note, is_public) select repeat('a', 100), n % 2 = 0 from generate_series(1, ${MARKS}) n;

  create table public.essays (id bigint generated always as identity primary key, body text not null);
  grant select on public.essays to anon, authenticated;
  insert into public.essays (body)
    select (select string_agg(md5(n || '-' || part), '') from generate_series(1, 30) part) from generate_series(1, 100) n;

  create table public.documents (
    id bigint generated always as identity primary key,
    tenant bigint not null default ((auth.jwt() ->> 'tenant')::bigint),
    body text not null
  );
  alter table public.documents enable row level security;
  create policy own on public.documents to authenticated using (tenant = (select (auth.jwt() ->> 'tenant')::bigint));
  grant select, insert on public.documents to authenticated;
  create function public.write_document(body text) returns void language sql
    as $$ insert into public.documents (body) values (body) $$;
  grant execute on function public.write_document to authenticated;

  create table public.memberships (person text primary key, room int not null);
  create table public.letters (id int primary key, room int not null, body text not null);
  alter table public.memberships enable row level security;
  alter table public.letters enable row level security;
  create policy own on public.memberships for select to authenticated using (person = (select auth.jwt() ->> 'sub'));
  create policy of_members on public.letters for select to authenticated
    using (room in (select m.room from public.memberships m where m.person = (select auth.jwt() ->> 'sub')));
  grant select on public.memberships, public.letters to authenticated;
  -- About a thousand commits a second.
  create procedure public.change_memberships(times int, strangers int) language plpgsql as $$ begin
    for time in 1..times loop
      insert into public.memberships values ('stranger ' || floor(random() * strangers)::int, floor(random() * ${ROOMS})::int)
        on conflict (person) do update set room = excluded.room;
      commit;
      perform pg_sleep(0.0005);
    end loop;
  end $$;
  insert into public.letters select n, n % ${ROOMS + 1}, 'of room ' || n % ${ROOMS + 1} from generate_series(1, 60) n;
`;

/** Starts the content service's own database with these tables. */
export async function startAttacked(): Promise<Scratch> {
  const scratch = await startContent();
  await scratch.execute(TABLES);
  await scratch.execute("vacuum analyze");
  return scratch;
}

/** Counts documents that belong to another tenant than their writer. */
export async function countMisplaced(scratch: Scratch): Promise<number> {
  const { rows } = await scratch.execute(
    "select count(*)::int as count from public.documents where body <> 'by ' || tenant",
  );
  return rows[0].count;
}
