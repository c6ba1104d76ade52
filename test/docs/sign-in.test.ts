import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { useDatabase } from "../database.ts";
import { REPOSITORY } from "../repository.ts";
import { useService } from "../serve.ts";
import { inClone } from "./in-clone.ts";
import { followTutorial, isAsPublished } from "./tutorial.ts";

const database = useDatabase();
const service = useService({ database });

test("the requests of the page about sign-in have the responses that it shows", async () => {
  const page = await readFile(join(REPOSITORY, "docs/sign-in.md"), "utf8");
  const environment = inClone(database);
  // Examples for clients, which need a browser or a code, have no response beside them.
  const requests = page
    .replaceAll(/^```(?:js|sql|html)\n.*?^```$/gms, "")
    .replaceAll(/^```json\n\{ "user".*?^```$/gms, "");
  const steps = await followTutorial(requests, { folder: REPOSITORY, environment, address: service.url });
  expect(steps.filter(({ expected }) => expected !== null).length).toBeGreaterThan(12);
  expect(steps.filter((step) => !isAsPublished(step))).toEqual([]);
});
