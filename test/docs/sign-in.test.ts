import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { useDatabase } from "../database.ts";
import { useFolder } from "../fixture.ts";
import { REPOSITORY } from "../repository.ts";
import { useService } from "../serve.ts";
import { withCodes } from "./codes-of-messages.ts";
import { inClone } from "./in-clone.ts";
import { requestsOf } from "./requests-of-page.ts";
import { followTutorial, isAsPublished } from "./tutorial.ts";

const database = useDatabase();
const mails = useFolder("content-service-mails-");
// On a playground an address is proved without an e-mail. The schema of GraphQL is built before the first request, however long it takes.
const service = useService({
  database,
  settings: () => ({ MAIL_DIR: mails, AUTH_AUTOCONFIRM: "true", GRAPHQL_PRELOAD: "true" }),
});

test("the requests of the page about sign-in have the responses that it shows", async () => {
  const page = await readFile(join(REPOSITORY, "docs/sign-in.md"), "utf8");
  // A request that the service sends.
  const requests = requestsOf(page.replace(/^```json\n\{ "user".*?^```$/ms, ""));
  const install = (commands: string) => withCodes(commands, mails);
  const options = { folder: REPOSITORY, environment: inClone(database), address: service.url, install };
  const steps = await followTutorial(requests, options);
  expect(steps.filter(({ expected }) => expected !== null).length).toBeGreaterThan(24);
  expect(steps.filter((step) => !isAsPublished(step))).toEqual([]);
});
