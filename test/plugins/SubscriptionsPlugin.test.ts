import { EventEmitter, on } from "node:events";
import { makePgService } from "@dataplan/pg/adaptors/pg";
import { makeSchema } from "graphile-build";
import { beforeAll, describe, expect, test, vi } from "vitest";
import { makePreset } from "../../plugins/preset.ts";
import { type RowEvent, topicsOf } from "../../plugins/row-events.ts";
import { alice, anonymous, type Caller, SEED } from "../db/callers.ts";
import { useGeneratedSchema } from "./generated-schema.ts";

const generated = useGeneratedSchema({
  sql: `
    ${SEED}
    create table public.notes (
      owner_id bigint not null references public.users,
      number   integer not null,
      body     text,
      primary key (owner_id, number)
    );
    create trigger _500_event after insert or update on public.notes
      for each row execute function content_service.tg__event('owner_id', 'number');
    alter table public.notes enable row level security;
    create policy select_own on public.notes for select using (owner_id = (select auth.uid()));
    grant select on public.notes to anon, authenticated;
    comment on table public.notes is '@subscription onNoteWritten on:insert by:owner_id? notNull';
    create table public.readings (
      is_final boolean, span int4range, raw bytea, at timestamptz, value integer, primary key (is_final, span, raw, at)
    );
    create trigger _500_event after insert on public.readings
      for each row execute function content_service.tg__event('is_final', 'span', 'raw', 'at');
    grant select on public.readings to anon;
    comment on table public.readings is '@subscription onReading on:insert by:is_final notNull';
    create domain public.moment as timestamptz;
    create schema hidden;
    create domain hidden.price as numeric(10, 2);
    create domain hidden.fair_price as hidden.price check (value > 0);
    create table public.codes (code char(5) primary key);
    insert into public.codes values ('ab');
    create table public.signals (
      id int primary key, at timestamptz, noticed public.moment, span int4range, code char(5), day date, price numeric(10, 2),
      length interval, raw bytea, extra jsonb, note text, code_known char(5) references public.codes, fair hidden.fair_price
    );
    create trigger _500_event after insert on public.signals for each row execute function
      content_service.tg__event('at', 'noticed', 'span', 'code', 'day', 'price', 'length', 'raw', 'extra', 'note', 'code_known', 'fair');
    grant select on public.signals to anon;
    comment on table public.signals is e'@subscription onAt on:insert by:at
      @subscription onNoticed on:insert by:noticed
      @subscription onSpan on:insert by:span
      @subscription onCode on:insert by:code
      @subscription onDay on:insert by:day
      @subscription onPrice on:insert by:price
      @subscription onLength on:insert by:length
      @subscription onRaw on:insert by:raw
      @subscription onExtra on:insert by:extra
      @subscription onNote on:insert by:note
      @subscription onCodeKnown on:insert by:code_known
      @subscription onFair on:insert by:fair';
  `,
});

/** Events as they come from the database, for those who wait. */
class Events {
  readonly #emitter = new EventEmitter();

  async *subscribe(topic: string): AsyncGenerator<RowEvent> {
    for await (const [event] of on(this.#emitter, topic)) yield event;
  }

  hear(payload: string): void {
    const event = JSON.parse(payload);
    for (const topic of topicsOf(event)) this.#emitter.emit(topic, event);
  }

  isHeard(): boolean {
    return this.#emitter.eventNames().length > 0;
  }
}

const events = new Events();

beforeAll(async () => {
  generated.owner.on("notification", ({ payload }) => events.hear(payload!));
  await generated.owner.query("listen graphql; select content_service.await_events(3600)");
});

/** Returns the results that a subscriber receives after the statements. */
async function resultOf(
  caller: Caller,
  source: string,
  variables: Record<string, unknown>,
  sql: string,
  count: number,
): Promise<unknown[]> {
  const stream = await generated.subscribe(caller, source, variables, events);
  if (!(Symbol.asyncIterator in stream)) throw new Error(JSON.stringify(stream.errors));
  const result: unknown[] = [];
  const next = stream[Symbol.asyncIterator]();
  const first = next.next();
  await vi.waitFor(() => expect(events.isHeard()).toBe(true));
  await generated.owner.query(sql);
  result.push(structuredClone((await first).value));
  while (result.length < count) result.push(structuredClone((await next.next()).value));
  await next.return?.();
  return result;
}

const CREATED = "subscription { onArticleCreated { id title author { name } } }";
const UPDATED = "subscription ($id: ID) { onArticleUpdated(id: $id) { id status } }";
const COMMENTED =
  "subscription ($articleId: ID!) { onCommentAdded(articleId: $articleId) { content author { name } article { id } } }";

describe("a subscriber", () => {
  test("receives each new article", async () => {
    const sql = "insert into public.articles (title, content, author_id) values ('First', '', 1), ('Second', '', 2)";
    expect(await resultOf(anonymous, CREATED, {}, sql, 2)).toEqual([
      { data: { onArticleCreated: { id: "3", title: "First", author: { name: "Alice" } } } },
      { data: { onArticleCreated: { id: "4", title: "Second", author: { name: "Bob" } } } },
    ]);
  });

  test("receives comments on the given article, in any spelling of its id", async () => {
    const sql =
      "insert into public.comments (article_id, author_id, content) values (2, 1, 'Elsewhere'), (1, 2, 'Here')";
    expect(await resultOf(anonymous, COMMENTED, { articleId: "01" }, sql, 1)).toEqual([
      { data: { onCommentAdded: { content: "Here", author: { name: "Bob" }, article: { id: "1" } } } },
    ]);
  });

  test("receives changes of one article, or of all", async () => {
    const sql =
      "update public.articles set status = 'PUBLISHED' where id = 1; update public.articles set status = 'ARCHIVED' where id = 2";
    const archived = { data: { onArticleUpdated: { id: "2", status: "ARCHIVED" } } };
    expect(await resultOf(anonymous, UPDATED, { id: 2 }, sql, 1)).toEqual([archived]);
    expect(await resultOf(anonymous, UPDATED, {}, sql, 2)).toEqual([
      { data: { onArticleUpdated: { id: "1", status: "PUBLISHED" } } },
      archived,
    ]);
    expect(await resultOf(anonymous, UPDATED, { id: null }, sql, 2)).toHaveLength(2);
  });

  test("is refused a malformed id", async () => {
    for (const [source, variables] of [
      [COMMENTED, { articleId: "abc" }],
      [UPDATED, { id: "abc" }],
    ] as const) {
      const answer = await generated.subscribe(anonymous, source, variables, events);
      expect(answer).toMatchObject({ errors: [{ message: '"abc" is not a valid id.' }] });
    }
  });

  test("receives rows with any key, and only with its own privileges", async () => {
    const source = "subscription { onNoteWritten { ownerId number body } }";
    const sql = "insert into public.notes values (1, 1, 'Of Alice')";
    expect(await resultOf(alice, source, {}, sql, 1)).toEqual([
      { data: { onNoteWritten: { ownerId: "1", number: 1, body: "Of Alice" } } },
    ]);
    const [hidden] = await resultOf(anonymous, source, {}, "insert into public.notes values (1, 2, 'Of Alice too')", 1);
    expect(hidden).toMatchObject({ data: null });
    expect(JSON.stringify(hidden)).not.toContain("Of Alice");
  });
});

test("a row is found by a key of any type", async () => {
  const source = "subscription { onReading(isFinal: true) { raw value } }";
  const sql = String.raw`
    insert into public.readings values (false, '[1,5)', '\x00ff', '2026-01-01Z', 1), (true, '[1,5)', '\x00ff', '2026-01-01Z', 2)`;
  expect(await resultOf(anonymous, source, {}, sql, 1)).toEqual([{ data: { onReading: { raw: "AP8=", value: 2 } } }]);
});

describe("a value with several spellings", () => {
  test.each([
    ['onAt(at: "2026-01-01T12:00:00+02:00")', "at", "2026-01-01T10:00Z"],
    ['onNoticed(noticed: "2026-01-01T10:00:00Z")', "noticed", "2026-01-01T19:00+09"],
    ["onSpan(span: { start: { value: 1, inclusive: true }, end: { value: 4, inclusive: true } })", "span", "[1,5)"],
    ['onCode(code: "ab")', "code", "ab"],
    ['onDay(day: "2026-1-2")', "day", "2026-01-02"],
    ['onPrice(price: "1.5")', "price", "1.50"],
    ["onLength(length: { hours: 24 })", "length", "24:00:00"],
    ['onRaw(raw: "AP8=")', "raw", String.raw`\x00ff`],
    ["onExtra(extra: { b: 1, a: 2 })", "extra", '{"a": 2, "b": 1}'],
    ['onAt(at: "2026-01-01T10:00:00.5Z")', "at", "2026-01-01T10:00:00.5Z"],
    ['onCodeKnown(codeKnown: "ab")', "code_known", "ab"],
    ['onFair(fair: "1.5")', "fair", "1.50"],
  ])("%s receives the row with that value, and no other", async (field, column, value) => {
    await generated.owner.query("delete from public.signals");
    const sql = `
      set timezone = 'Asia/Tokyo';
      insert into public.signals (id) values (1);
      insert into public.signals (id, ${column}) values (2, '${value}');
      reset timezone`;
    const name = field.replace(/\(.*/, "");
    expect(await resultOf(anonymous, `subscription { ${field} { id } }`, {}, sql, 1)).toEqual([
      { data: { [name]: { id: "2" } } },
    ]);
  });

  test("is distinct for a text that looks like a time", async () => {
    const sql = `insert into public.signals (id, note) values
      (1, '2026-01-01T10:00:00+00:00'), (2, '2026-01-01T10:00:00.000Z'), (3, '2026-01-01T12:00:00+02:00')`;
    for (const [note, id] of [
      ["2026-01-01T12:00:00+02:00", "3"],
      ["2026-01-01T10:00:00.000Z", "2"],
    ]) {
      await generated.owner.query("delete from public.signals");
      expect(await resultOf(anonymous, `subscription { onNote(note: "${note}") { id } }`, {}, sql, 1)).toEqual([
        { data: { onNote: { id } } },
      ]);
    }
  });

  test.each([
    ["column", "alter table public.signals rename day to date", "alter table public.signals rename date to day"],
    ["table", "alter table public.signals rename to signs", "alter table public.signs rename to signals"],
  ])("is refused with a short error if its %s has just been renamed", async (_, rename, back) => {
    await generated.owner.query(rename);
    const answer = await generated.subscribe(anonymous, 'subscription { onDay(day: "2026-01-01") { id } }', {}, events);
    await generated.owner.query(back);
    expect(answer).toMatchObject({ errors: [{ message: expect.stringContaining("has just been changed") }] });
  });

  test("is refused if it is invalid", async () => {
    const answer = await generated.subscribe(anonymous, 'subscription { onDay(day: "Monday") { id } }', {}, events);
    expect(answer).toMatchObject({ errors: [{ message: expect.stringContaining("invalid input syntax") }] });
  });
});

describe("a comment with an invalid subscription", () => {
  test.each([
    ["onThing on:delete", "write it as"],
    ["onThing", "write it as"],
    ["on:insert onThing", "write it as"],
    ["onThing on:insert by:nobody", 'there is no column "nobody"'],
  ])("@subscription %s is refused with its name", async (spelling, advice) => {
    await generated.owner.query(`comment on table public.notes is '@subscription ${spelling}'`);
    const pgService = makePgService({ connectionString: generated.database.url, schemas: ["public"], pubsub: false });
    const reason = await makeSchema(makePreset({ pgService, maxPageSize: 1000 })).then(
      String,
      ({ message }) => message,
    );
    await pgService.release?.();
    expect(reason).toContain(`"@subscription ${spelling}" of public.notes: ${advice}`);
  });
});
