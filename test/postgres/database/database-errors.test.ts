import { expect, test } from "vitest";
import { isSchemaOutdated } from "../../../postgres/database/database-errors.ts";
import { useFixture } from "../../fixture.ts";
import { anon, open, sql } from "./open.ts";

const opened = useFixture(() =>
  open(`
    create table words (word text);
    insert into words values ('no_such');
    create function inlined(word text) returns text stable language sql as 'select word::regclass::text';
    create function looked_up() returns text stable language plpgsql as 'begin return (select lost from words); end';
    create view counted as select nextval(word::regclass) from words;
    grant select on words, counted to anon`),
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
