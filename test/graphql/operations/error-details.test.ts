import { describe, expect, test } from "vitest";
import { useFixture } from "../../fixture.ts";
import { type GraphQLService, serveGraphQL, tokenFor } from "../../graphql.ts";
import { BY_GRAFAST } from "../grafast/grafast-stages.ts";

const TABLES = `
  create extension if not exists btree_gist;
  create domain public.percentage as int check (value between 0 and 100);
  create domain public.required_text as text not null;
  create type public.size as enum ('small', 'large');
  create table public.rooms (id int primary key, name text);
  create table public.bookings (
    id int primary key,
    room_id int not null references public.rooms,
    later_room_id int references public.rooms deferrable initially deferred,
    seats int check (seats > 0),
    seats_left int,
    days int4range,
    code varchar(3) unique,
    title text,
    share public.percentage,
    size public.size,
    note text generated always as ('note ' || id) stored,
    check (seats_left <= seats),
    exclude using gist (room_id with =, days with &&));
  create unique index on public.bookings (lower(title));
  create view public.small_bookings with (security_invoker) as
    select id, room_id, seats from public.bookings where seats < 5 with check option;
  comment on view public.small_bookings is '@primaryKey id';
  create function public.check_booking() returns trigger language plpgsql as $$ begin
    case new.title
      when 'null' then new.room_id := null;
      when 'raise' then raise exception 'Not this one.' using detail = 'title', hint = 'Choose another title.';
      when 'detail' then raise exception 'Not this one.' using errcode = 'WRONG', detail = 'room_id';
      when 'hint' then raise exception 'Not this one.' using errcode = '23514', hint = 'Choose another title.';
      when 'forbidden' then raise exception 'No.' using errcode = '42501', detail = 'Only on Mondays.', hint = 'Wait.';
      else null;
    end case;
    return new;
  end $$;
  create table public.forms (id int primary key, title text check (title <> 'bad'), secret text not null default 'x' check (secret <> 'bad'));
  create table public.letters (
    id int, title text check (title <> 'bad'), secret text not null default 'x' check (secret <> 'bad')
  ) partition by hash (id);
  create table public.letters_0 partition of public.letters for values with (modulus 1, remainder 0);
  create schema hidden;
  create table hidden.files (id int primary key, name text not null, secret text not null default 'x' check (secret <> 'bad'));
  create view public.papers as select id, name as title from hidden.files;
  comment on view public.papers is '@primaryKey id';
  create function public.hide() returns trigger language plpgsql as $$ begin
    if to_jsonb(new) ->> 'id' = '7' then new.secret := null; end if;
    if to_jsonb(new) ->> 'id' = '8' then new.secret := 'bad'; end if;
    return new;
  end $$;
  create trigger hide before insert on public.forms for each row execute function public.hide();
  create trigger hide before insert on public.letters for each row execute function public.hide();
  create trigger hide before insert on hidden.files for each row execute function public.hide();
  grant select (id, title), insert (id, title) on public.forms, public.letters to authenticated;
  grant select, insert on public.papers to authenticated;
  create trigger check_booking before insert or update on public.bookings for each row execute function public.check_booking();
  alter table public.rooms enable row level security;
  create policy visible on public.rooms for select using (true);
  create policy removable on public.rooms for delete using (true);
  create policy numbered on public.rooms for insert with check (id < 100);
  grant select, insert, update, delete on public.bookings, public.rooms, public.small_bookings to authenticated;
  insert into public.rooms values (1, 'first'), (2, 'second');
  insert into public.bookings (id, room_id, days, code, title, seats)
    values (1, 1, '[1,5)', 'abc', 'Taken', 1), (2, 2, '[1,5)', 'xyz', 'Other', 2);`;

const settings = { REST_REQUIRE_APIKEY: "false" };
const graphql = useFixture(() => serveGraphQL({ before: TABLES, settings }));
const grafast = useFixture(() => serveGraphQL({ database: graphql.database, settings, options: BY_GRAFAST }));
const minimal = useFixture(() =>
  serveGraphQL({ database: graphql.database, settings: { ...settings, PGRST_CLIENT_ERROR_VERBOSITY: "minimal" } }),
);

type Row = Readonly<Record<string, unknown>>;

const camelCase = (name: string) => name.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());

/** The same row with the names of GraphQL, which writes a range as an object. */
function toInput(row: Row): Row {
  const entries = Object.entries(row).map(([name, value]) => [camelCase(name), name === "days" ? toRange() : value]);
  return Object.fromEntries(entries);
}

const toRange = () => ({ start: { value: 2, inclusive: true }, end: { value: 3, inclusive: false } });

async function askTable(service: GraphQLService, method: string, path: string, row?: Row) {
  const response = await fetch(`${service.service.url}/rest/v1/${path}`, {
    method,
    headers: { "Content-Type": "application/json", Authorization: `Bearer ${tokenFor(1)}` },
    ...(row && { body: JSON.stringify(row) }),
  });
  expect(response.ok).toBe(false);
  return (await response.json()) as { readonly details?: unknown; readonly hint?: unknown };
}

async function askGraphql(service: GraphQLService, field: string, input?: Row) {
  const variables = { input: input && toInput(input) };
  const type = `${field[0]!.toUpperCase()}${field.slice(1)}Input`.replace(/\(.*\)/, "");
  const query = input ? `mutation ($input: ${type}!) { ${field}(input: $input) { id } }` : `mutation { ${field} }`;
  const { errors } = await service.ask(query, { variables, token: tokenFor(1) });
  expect(errors).toHaveLength(1);
  return errors[0].extensions;
}

const BOOKING: Row = { id: 9, room_id: 1 };

const REFUSED_BOOKINGS: readonly (readonly [kind: string, row: Row])[] = [
  ["a value that is not null", { ...BOOKING, title: "null" }],
  ["a check of one column", { ...BOOKING, seats: 0 }],
  ["a check of several columns", { ...BOOKING, seats: 1, seats_left: 2 }],
  ["a unique column", { ...BOOKING, code: "abc" }],
  ["a unique index on an expression", { ...BOOKING, title: "TAKEN" }],
  ["a primary key", { ...BOOKING, id: 1 }],
  ["a foreign key", { ...BOOKING, room_id: 77 }],
  ["a deferred foreign key", { ...BOOKING, later_room_id: 77 }],
  ["an exclusion", { ...BOOKING, days: "[2,3)" }],
  ["a domain", { ...BOOKING, share: 101 }],
  ["a maximum length", { ...BOOKING, code: "abcdef" }],
  ["a trigger, with detail and hint", { ...BOOKING, title: "raise" }],
  ["a trigger, with detail", { ...BOOKING, title: "detail" }],
  ["a trigger, with hint", { ...BOOKING, title: "hint" }],
  ["a trigger as a missing privilege", { ...BOOKING, title: "forbidden" }],
];

describe("GraphQL and tables give the same details and hint for a violation of", () => {
  const expectSame = (table: { details?: unknown; hint?: unknown }, extensions: Row) => {
    expect({ details: extensions.details ?? null, hint: extensions.hint ?? null }).toEqual({
      details: table.details,
      hint: table.hint,
    });
  };

  test.each(REFUSED_BOOKINGS)("%s", async (_, row) => {
    const table = await askTable(graphql, "POST", "bookings", row);
    expectSame(table, await askGraphql(graphql, "createBooking", row));
    expectSame(table, await askGraphql(grafast, "createBooking", row));
  });

  test("a foreign key, by a row that is deleted", async () => {
    const table = await askTable(graphql, "DELETE", "rooms?id=eq.1");
    expect(table.details).toBe('Key is still referenced from table "bookings".');
    expectSame(table, await askGraphql(graphql, "deleteRoom(id: 1)"));
    expectSame(table, await askGraphql(grafast, "deleteRoom(id: 1)"));
  });

  test("the condition of a view", async () => {
    const row = { ...BOOKING, seats: 7 };
    const table = await askTable(graphql, "POST", "small_bookings", row);
    expect(table.details).toMatch(/^Failing row contains/);
    expectSame(table, await askGraphql(graphql, "createSmallBooking", row));
  });

  test("a policy", async () => {
    const row = { id: 100 };
    expectSame(await askTable(graphql, "POST", "rooms", row), await askGraphql(graphql, "createRoom", row));
  });
});

test("the details of a constraint are Postgres's sentence, beside the field", async () => {
  expect(await askGraphql(graphql, "createBooking", { ...BOOKING, code: "abc" })).toEqual({
    code: "RESOURCE_CONFLICT",
    field: "code",
    details: "Key (code)=(abc) already exists.",
  });
});

describe.each([
  ["form", "bad"],
  ["letter", "bad"],
  ["paper", null],
])("an error about a column of a %s", (name, refused) => {
  const ofRest = async (row: Row) => {
    const response = await fetch(`${graphql.service.url}/api/v1/${name}s`, {
      method: "POST",
      headers: { "Content-Type": "application/json", Authorization: `Bearer ${tokenFor(1)}` },
      body: JSON.stringify(row),
    });
    return (await response.json()) as { readonly error: { readonly message: string; readonly details: object[] } };
  };
  const ofGraphql = (row: Row) => askGraphql(graphql, `create${name[0]!.toUpperCase()}${name.slice(1)}`, row);

  test("names a field that the role may see", async () => {
    const row = { id: 1, title: refused };
    expect(await ofGraphql(row)).toMatchObject({ field: "title" });
    expect((await ofRest(row)).error.details).toMatchObject([{ field: "title" }]);
  });

  test.each([7, 8])("names no other field (%i)", async (id) => {
    const row = { id, title: "good" };
    expect(await ofGraphql(row)).not.toHaveProperty("field");
    expect((await ofRest(row)).error.details).toEqual([]);
  });
});

test("a fault of the service has the hint of the other interfaces, and no details", async () => {
  await graphql.sql(`create function public.faulty() returns int stable language plpgsql as $$ begin
    raise exception 'secret' using errcode = 'XX000', detail = 'secret', hint = 'secret'; end $$;
    grant execute on function public.faulty to authenticated; notify pgrst, 'reload schema'`);
  const read = async () => (await graphql.ask("{ faulty }", { token: tokenFor(1) })).errors?.[0].extensions;
  await expect.poll(read, { timeout: 10_000 }).toMatchObject({ code: "INTERNAL_ERROR" });
  expect(await read()).toEqual({
    code: "INTERNAL_ERROR",
    requestId: expect.any(String),
    hint: (await askTable(graphql, "POST", "rpc/faulty", {})).hint,
  });
});

test("a deployment that hides them in errors of tables hides them in GraphQL too", async () => {
  const row = { ...BOOKING, title: "raise" };
  expect(await askTable(minimal, "POST", "bookings", row)).toEqual({ code: "P0001", message: "Not this one." });
  expect(await askGraphql(minimal, "createBooking", row)).toEqual({ code: "VALIDATION_ERROR", field: "title" });
  const unreadable = await fetch(minimal.url, { method: "POST", body: "{}", headers: { "Content-Type": "text/csv" } });
  expect(await unreadable.text()).not.toContain("hint");
});
