import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { useClient, useDatabase } from "../database.ts";
import { REPOSITORY } from "../repository.ts";
import { useService } from "../serve.ts";
import { inClone } from "./in-clone.ts";
import { requestsOf, statementsOf } from "./requests-of-page.ts";
import { followTutorial, isAsPublished } from "./tutorial.ts";

type Page = { readonly name: string; readonly responses: number; readonly settings?: NodeJS.ProcessEnv };

/** Pages with the number of responses that they show at least, and the settings that they name. */
const PAGES: readonly Page[] = [
  { name: "table-interface", responses: 20 },
  {
    name: "graphql",
    responses: 15,
    settings: { GRAPHQL_NODE: "true", PGRST_DB_AGGREGATES_ENABLED: "true", GRAPHQL_PRELOAD: "true" },
  },
  { name: "rest", responses: 5 },
  { name: "asynchronous", responses: 2 },
  { name: "errors", responses: 1 },
  { name: "admin-interface", responses: 15, settings: { STUDIO_SQL: "on" } },
];

describe.each(PAGES)("the page $name", ({ name, responses, settings = {} }) => {
  let page: string;

  const database = useDatabase();
  const owner = useClient(database.ownerUrl);
  beforeAll(async () => {
    page = await readFile(join(REPOSITORY, `docs/${name}.md`), "utf8");
    for (const statements of statementsOf(page)) await owner.query(statements);
  });
  const service = useService({ database, settings });

  test("shows what its requests answer", async () => {
    const options = { folder: REPOSITORY, environment: inClone(database), address: service.url };
    const steps = await followTutorial(requestsOf(page), options);
    expect(steps.filter(({ expected }) => expected !== null).length).toBeGreaterThanOrEqual(responses);
    expect(steps.filter((step) => !isAsPublished(step))).toEqual([]);
  });
});
