import type { DatabaseError } from "pg";
import { expect, test } from "vitest";
import { clientDetailOf, isSchemaOutdated } from "../../../postgres/database/database-errors.ts";
import { useFixture } from "../../fixture.ts";
import { anon, open, sql } from "./open.ts";

const opened = useFixture(() =>
  open(`
    create table words (word text);
    insert into words values ('no_such');
    create function inlined(word text) returns text stable language sql as 'select word::regclass::text';
    create function looked_up() returns text stable language plpgsql as 'begin return (select lost from words); end';
    create view counted as select nextval(word::regclass) from words;
    create table parents (id int primary key);
    create table children (id int, parent int not null references parents on delete set null on update cascade check (parent < 9));
    create table parted (id int, parent int not null references parents on delete set null) partition by hash (id);
    create table parted_0 partition of parted for values with (modulus 1, remainder 0);
    insert into parents values (1), (2), (3);
    insert into children values (7700123, 1);
    insert into parted values (7700123, 2);
    create procedure emptied(unnamed int) language plpgsql as 'begin update children set parent = null where id = unnamed; end';
    grant select on words, counted to anon;
    grant all on parents, children to anon`),
);

const faultOf = (text: string, ...values: string[]) =>
  opened.database.run(anon, sql(text, ...values), { readOnly: true }).then(
    () => null,
    (error: unknown) => error,
  );

test.each([
  ["a column", "select lost from words"],
  ["a table", "select from lost"],
  ["a schema", "select from lost.words"],
  ["a function", "select lost(words) from words"],
  ["a function of a schema", "select lost.looked_up()"],
])("a statement that names a missing %s is outdated", async (_, text) => {
  expect(isSchemaOutdated(await faultOf(text))).toBe(true);
});

test.each([
  ["the value of a row, by a function that is inlined", "select inlined(word) from words", "42P01"],
  ["the value of a row, by a view", "select * from counted", "42P01"],
  ["a parameter", "select $1::regclass", "42P01", "no_such"],
  ["the statement of a function", "select looked_up()", "42703"],
])("an error of the request itself is not, with the unknown name in %s", async (_, text, code, ...values) => {
  const fault = await faultOf(text, ...values);
  expect(fault).toMatchObject({ code });
  expect(isSchemaOutdated(fault)).toBe(false);
});

/** How the server names a statement that another one runs, by `lc_messages`. */
const CONTEXTS: Readonly<Record<string, readonly [string, string]>> = {
  en: ['SQL statement "', '"'],
  de: ["SQL-Anweisung »", "«"],
  fr: ["instruction SQL « ", " »"],
  ja: ['SQL文 "', '"'],
};

const writeFaultOf = async (text: string) => {
  const fault: unknown = await opened.database.run(anon, sql(text), { readOnly: false }).catch((error) => error);
  return fault as DatabaseError;
};

const REFUSED_ACTIONS: Readonly<Record<string, string>> = {
  "on delete": "delete from parents where id = 1",
  "on update": "update parents set id = 10 where id = 1",
  "on delete, of a partitioned table": "delete from parents where id = 2",
};

test.each(
  Object.keys(CONTEXTS).flatMap((language) =>
    Object.keys(REFUSED_ACTIONS).map((action) => [language, action] as const),
  ),
)("the row that an action of a foreign key was refused for is not quoted: %s, %s", async (language, action) => {
  const fault = await writeFaultOf(REFUSED_ACTIONS[action]!);
  const [, text] = /^SQL statement "(.*)"$/s.exec(fault.where ?? "") ?? [];
  expect(fault.detail).toContain("7700123");
  expect(text).toBeDefined();
  const [before, after] = CONTEXTS[language]!;
  fault.where = `${before}${text}${after}`;
  expect(clientDetailOf(fault)).toBeNull();
});

test("the row of a statement of the caller's own is quoted, in a function too", async () => {
  for (const text of ["insert into children values (5, null)", "call emptied(7700123)"]) {
    const fault = await writeFaultOf(text);
    expect(clientDetailOf(fault)).toMatch(/^Failing row contains \(\d+, null\)\.$/);
  }
});
