import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { useClient, useDatabase } from "../database.ts";
import { REPOSITORY } from "../repository.ts";
import { useService } from "../serve.ts";
import { inClone } from "./in-clone.ts";
import { followTutorial, isAsPublished } from "./tutorial.ts";

const SQL = /^```sql\n(.*?)^```$/gms;

let page: string;

const database = useDatabase();
const owner = useClient(database.ownerUrl);
beforeAll(async () => {
  page = await readFile(join(REPOSITORY, "docs/table-patterns.md"), "utf8");
  for (const [, text] of page.matchAll(SQL)) await owner.query(text!);
});
const service = useService({ database });

test("the patterns of tables show to whom their rows are visible", async () => {
  const environment = inClone(database);
  const requests = page.replaceAll(SQL, "");
  const steps = await followTutorial(requests, { folder: REPOSITORY, environment, address: service.url });
  expect(steps.filter(({ expected }) => expected !== null).length).toBeGreaterThan(4);
  expect(steps.filter((step) => !isAsPublished(step))).toEqual([]);
});
