import { expect, test } from "vitest";
import { anonymizeRows, checkAnonymization } from "../../../cluster/archive/anonymized-rows.ts";
import { allTables } from "../../../cluster/archive/content/content-tables.ts";
import { tableRows } from "../../../cluster/archive/content/read-rows.ts";
import { copySchema } from "../../../cluster/archive/copy-schema.ts";
import { withClient } from "../../../postgres/client/with-client.ts";
import { cloneDatabase } from "../../database.ts";

type Row = Record<string, unknown>;
type Query = (sql: string) => Promise<Row[]>;

/** Creates the database by the SQL, copies it anonymized twice, and gives the work both copies. */
async function withCopies(sql: string, work: (one: Query, other: Query) => Promise<void>): Promise<void> {
  const [source, one, other] = [
    await cloneDatabase("empty"),
    await cloneDatabase("empty"),
    await cloneDatabase("empty"),
  ];
  try {
    await withClient(source.ownerUrl, (client) => client.query(sql));
    for (const { ownerUrl } of [one, other])
      await copySchema(source.ownerUrl, ownerUrl, { withRows: true, isAnonymized: true });
    const queryOf =
      (url: string): Query =>
      (text) =>
        withClient(url, async (client) => (await client.query(text)).rows);
    await work(queryOf(one.ownerUrl), queryOf(other.ownerUrl));
  } finally {
    for (const database of [source, one, other]) await database.drop();
  }
}

/** The texts of all rows of all tables, views aside. */
async function allText(query: Query): Promise<string> {
  const tables = await query(
    "select oid::regclass::text as name from pg_class where relkind in ('r', 'm') and relnamespace >= 16384 or relnamespace = 'public'::regnamespace and relkind in ('r', 'm')",
  );
  const texts = await Promise.all(tables.map(({ name }) => query(`select t::text as text from ${name} t`)));
  return texts
    .flat()
    .map(({ text }) => text)
    .join("\n");
}

test("replaces values by the tags of the columns, and leaves no original", async () => {
  const sql = `
    create extension citext;
    create domain short as varchar(20);
    create table people (
      id int primary key, email citext not null unique, name varchar(12), note text, born date, seen timestamptz, token uuid unique,
      digest bytea, phone text, place text not null, code short, upper text generated always as (upper(name)) stored
    );
    comment on column people.email is e'@name address\\n@anonymize email\\nWhere mail goes.';
    comment on column people.name is '@anonymize name';
    comment on column people.note is '@anonymize text';
    comment on column people.born is '@anonymize date';
    comment on column people.seen is '@anonymize date';
    comment on column people.token is '@anonymize hash';
    comment on column people.digest is '@anonymize hash';
    comment on column people.phone is '@anonymize null';
    comment on column people.place is '@anonymize fixed No where''s place';
    comment on column people.code is '@anonymize hash';
    create table mails (id int primary key, recipient citext references people (email), sender citext);
    comment on column mails.recipient is '@anonymize email';
    comment on column mails.sender is '@anonymize email';
    create table logs (day date, text text) partition by range (day);
    comment on column logs.text is '@anonymize text';
    create table logs_2026 partition of logs for values from ('2026-01-01') to ('2027-01-01');
    create table secrets (text text);
    comment on table secrets is e'@anonymize empty\\nSecrets.';
    create materialized view names as select name, email from people;
    insert into people select n, 'Person' || n || '@original.example', 'Original ' || n % 7, 'Original, ' || n || chr(10) || 'Übrig-ä', '2024-02-29',
      '2024-02-29 12:34:56+00', md5(n::text)::uuid, convert_to('original ' || n, 'UTF8'), '+4912345' || n, 'Original place', 'original' || n
      from generate_series(1, 300) n;
    insert into people (id, email, place) values (0, 'nobody@original.example', 'x');
    insert into mails select n, 'PERSON' || n || '@original.example', 'Person1@original.example' from generate_series(1, 300) n;
    insert into logs values ('2026-05-05', 'Original');
    insert into secrets values ('original secret')`;
  await withCopies(sql, async (one, other) => {
    const text = await allText(one);
    expect(text).toContain("@example.invalid");
    expect(/original|person|\+49|übrig|\\x6f726967/i.exec(text)).toBeNull();
    expect(
      await one(
        "select count(*)::int, count(distinct email)::int as emails, count(distinct token)::int as tokens from people",
      ),
    ).toEqual([{ count: 301, emails: 301, tokens: 300 }]);
    expect(await one("select count(*)::int from mails join people on email = recipient")).toEqual([{ count: 300 }]);
    expect(await one("select distinct sender = (select email from people where id = 1) as same from mails")).toEqual([
      { same: true },
    ]);
    const [person] = await one(
      "select *, born::text, extract(year from seen at time zone 'UTC')::int as year, upper = upper(name) as follows from people where id = 9",
    );
    expect(person).toMatchObject({
      name: expect.stringMatching(/^[A-Z]\w+ [A-Z]\w*$/),
      note: "xxxxxxxx, x\nxxxxx-x",
      born: expect.stringMatching(/^2024-/),
      year: 2024,
      digest: expect.any(Buffer),
      phone: null,
      place: "No where's place",
      code: expect.stringMatching(/^[0-9a-f]{20}$/),
      follows: true,
    });
    expect(await one("select name, note, born, token, code from people where id = 0")).toEqual([
      { name: null, note: null, born: null, token: null, code: null },
    ]);
    expect(await one("select text from logs")).toEqual([{ text: "xxxxxxxx" }]);
    expect(await one("select * from secrets")).toEqual([]);
    const emails = "select email from people order by id";
    expect(await other(emails)).not.toEqual(await one(emails));
  });
});

test("anonymizes the rows of a sample", async () => {
  const [source, branch] = [await cloneDatabase("empty"), await cloneDatabase("empty")];
  try {
    await withClient(source.ownerUrl, (client) =>
      client.query(`
        create table people (id int primary key, t text unique, s text);
        create table visits (id int primary key, person text references people (t));
        create table logs (id int primary key, person int references people);
        comment on column people.t is '@anonymize hash';
        comment on column visits.person is '@anonymize hash';
        comment on table logs is '@anonymize empty';
        insert into people select n, 'Person ' || n, 'kept' from generate_series(1, 3000) n;
        insert into visits select n, 'Person ' || n from generate_series(1, 3000) n;
        insert into logs select n, n from generate_series(1, 10) n`),
    );
    await copySchema(source.ownerUrl, branch.ownerUrl, { sample: { share: 0.05, seed: 0 }, isAnonymized: true });
    const [counts] = await withClient(
      branch.ownerUrl,
      async (client) =>
        (
          await client.query(
            `select (select count(*)::int from people where s = 'kept' and t !~ 'Person') as people, (select count(*)::int from visits) as visits,
               (select count(*)::int from logs) as logs`,
          )
        ).rows,
    );
    expect(counts.visits).toBeGreaterThan(100);
    expect(counts.people).toBeGreaterThan(counts.visits);
    expect(counts.people).toBeLessThan(500);
    expect(counts.logs).toBe(0);
  } finally {
    await source.drop();
    await branch.drop();
  }
});

test.each([
  ["a int not null", "null", "a: it is not null"],
  ["a int", "hash", '"hash" is for text'],
  ["a varchar(10)", "email", '"email" needs 36 characters, more than character varying(10)'],
  ["a text unique", "name", "it is part of a unique index"],
  ["a text, b int, unique (b, a)", "fixed x", "it is part of a unique index"],
  ["a text, exclude using btree (lower(a) with =)", "text", "it is part of a unique index"],
  ["a int", "fixed many", "give a value of type integer"],
  ["a text", "shuffle", 'there is no rule "shuffle": use hash, email'],
  ["a text", "", 'there is no rule ""'],
  ["b text, a text generated always as (b) stored", "text", "it is generated"],
  ["a text primary key, b text references t", "hash", 'the foreign key t_b_fkey of "public"."t"'],
  ["a varchar(20) unique, b text references t (a)", "hash", "need the same type"],
])("refuses a column of (%s) with @anonymize %s", async (columns, rule, message) => {
  const database = await cloneDatabase("empty");
  try {
    await withClient(database.ownerUrl, async (client) => {
      await client.query(`create table t (${columns}); comment on column t.a is '@anonymize ${rule}'`);
      if (/same type/.test(message)) await client.query(`comment on column t.b is '@anonymize ${rule}'`);
      await expect(checkAnonymization(client)).rejects.toThrow(message);
    });
  } finally {
    await database.drop();
  }
});

test("refuses tags of views, other tags of tables, and keys that refer to tables without rows", async () => {
  const database = await cloneDatabase("empty");
  try {
    await withClient(database.ownerUrl, async (client) => {
      await client.query(`
        create table t (a int primary key, email text); create table u (a int references t, b text, c text, d text);
        comment on column t.email is '@personal'; comment on column u.b is '@personal'; comment on column u.d is 'A @personal';
        comment on column u.c is e'@personal\\n@anonymize text';
        create view v as select * from t;
        comment on table t is '@anonymize empty'; comment on table u is '@anonymize hash'; comment on column v.a is '@anonymize null'`);
      const error: Error = await checkAnonymization(client).then(
        () => expect.fail("was not refused"),
        (refused) => refused,
      );
      expect(error.message.split("\n")).toEqual([
        "Change these comments, nothing was copied:",
        '- "public"."u".d: begin the comment with its tags: "@anonymize" and "@personal" are not read behind other text.',
        '- "public"."v".a: the rows of views come from tables, whose columns need the tag.',
        '- "public"."u": write "@anonymize empty" on a table, and other rules on its columns.',
        '- "public"."u".b: it is "@personal": write "@anonymize" and a rule, too.',
        expect.stringContaining(
          '- the foreign key u_a_fkey of "public"."u" refers to "public"."t", which is "@anonymize empty"',
        ),
      ]);
    });
  } finally {
    await database.drop();
  }
});

test("refuses tags behind other text, and of columns of a partition key, which would leave values or fail", async () => {
  const database = await cloneDatabase("empty");
  try {
    await withClient(database.ownerUrl, async (client) => {
      await client.query(`
        create table people (email text, name text);
        comment on table people is e'People.\n@anonymize empty';
        comment on column people.email is e'Where mail goes.\n@anonymize email';
        create table events (at date, mail text, place text) partition by range (at);
        create table events_2026 partition of events for values from ('2026-01-01') to ('2027-01-01') partition by hash (lower(mail));
        create table events_2026_0 partition of events_2026 for values with (modulus 1, remainder 0);
        comment on column events.at is '@anonymize date';
        comment on column events_2026_0.mail is '@anonymize email'; comment on column events.place is '@anonymize text'`);
      const error: Error = await checkAnonymization(client).then(
        () => expect.fail("was not refused"),
        (refused) => refused,
      );
      const misplaced = 'begin the comment with its tags: "@anonymize" and "@personal" are not read behind other text.';
      const ofKey = "it is part of the partition key, so its values cannot be replaced.";
      expect(error.message.split("\n")).toEqual([
        "Change these comments, nothing was copied:",
        `- "public"."events".at: ${ofKey}`,
        `- "public"."events_2026".at: ${ofKey}`,
        `- "public"."events_2026_0".at: ${ofKey}`,
        `- "public"."events_2026_0".mail: ${ofKey}`,
        `- "public"."people".email: ${misplaced}`,
        `- "public"."people": ${misplaced}`,
      ]);
    });
  } finally {
    await database.drop();
  }
});

test("follows tags of tables of extensions that have rows of users", async () => {
  const database = await cloneDatabase("empty");
  try {
    await withClient(database.ownerUrl, async (client) => {
      await client.query(`
        create extension citext;
        create table jobs (id int, command text); create table runs (message text);
        insert into jobs values (1, 'of the extension'), (2, 'Original');
        comment on column jobs.command is '@anonymize text'; comment on table runs is '@anonymize empty';
        alter extension citext add table jobs; alter extension citext add table runs;
        update pg_extension set extconfig = array['jobs', 'runs']::regclass[]::oid[], extcondition = array['where id > 1', '']
        where extname = 'citext';
        begin`);
      const [jobs, ...others] = await anonymizeRows(client, await allTables(client));
      expect(others).toEqual([]);
      expect(await Array.fromAsync(tableRows(client, jobs!))).toEqual(["(2,xxxxxxxx)"]);
      await client.query("rollback");
    });
  } finally {
    await database.drop();
  }
});
