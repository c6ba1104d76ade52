import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { REPOSITORY } from "../repository.ts";
import { useContent } from "./content.ts";

const content = useContent();

async function textOfTests(): Promise<string> {
  const folder = join(REPOSITORY, "test");
  const names = await readdir(folder, { recursive: true });
  const files = names.filter((name) => /\.(ts|sql)$/.test(name) && !name.endsWith("functions.test.ts"));
  return (await Promise.all(files.map((name) => readFile(join(folder, name), "utf8")))).join("\n");
}

test("each function of the database is named in a test", async () => {
  const { rows } = await content.owner.query<{ name: string }>(`
    select distinct format('%s.%s', nspname, proname) as name from pg_proc
    join pg_namespace on pg_namespace.oid = pronamespace
    where nspname in ('auth', 'api', 'content_service', 'public', 'realtime', 'storage') order by 1`);
  expect(rows.length).toBeGreaterThan(240);
  const words = new Set((await textOfTests()).match(/[\w.]+/g));
  expect(rows.map(({ name }) => name).filter((name) => !words.has(name))).toEqual([]);
});
