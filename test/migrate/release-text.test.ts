import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { releaseHistories } from "../../migrate/committed-migrations.ts";
import { placeReleaseText } from "../../migrate/release-text.ts";

async function readRelease(): Promise<string[]> {
  const texts: string[] = [];
  for (const { folder } of releaseHistories()) {
    const committed = join(folder, "committed");
    for (const name of await readdir(committed)) texts.push(await readFile(join(committed, name), "utf8"));
  }
  return texts;
}

test("no migration of the release names schema api where that is the project's", async () => {
  const texts = await readRelease();
  const statements = (text: string) => text.replace(/^--.*$/gm, "");
  const mentions = (text: string) =>
    statements(text).match(/.*(?<![\w.])(?:api\.(?!example)|'api'|schema api\b).*/g) ?? [];
  expect(texts.flatMap(mentions).length).toBeGreaterThan(50);
  expect(texts.map(placeReleaseText).flatMap(mentions)).toEqual([]);
});

test("the schema of the service is created once, with what callers need of it", () => {
  const text = `create schema api;
grant usage on schema api to anon;
comment on schema api is 'Versions.';

create schema content_service;
create table api.versions ();
comment on schema content_service is 'Internal.';
`;
  expect(placeReleaseText(text)).toBe(`create schema content_service;
grant usage on schema content_service to anon;

create table content_service.versions ();
comment on schema content_service is 'Internal.';
`);
});
