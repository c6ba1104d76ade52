import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import jwt from "jsonwebtoken";
import { beforeAll, expect, test } from "vitest";
import { useClient, useDatabase } from "../database.ts";
import { useFixture } from "../fixture.ts";
import { REPOSITORY } from "../repository.ts";
import { makeFunctionsProject } from "../rest-gateway/functions/project.ts";
import { SECRET } from "../secret.ts";
import { useService } from "../serve.ts";
import { inClone } from "./in-clone.ts";
import { requestsOf } from "./requests-of-page.ts";
import { followTutorial, isAsPublished } from "./tutorial.ts";

const ADA = 1;
const tokenOf = (claims: object) => jwt.sign(claims, SECRET, { expiresIn: "1h" });

const project = useFixture(
  () => makeFunctionsProject({}),
  ({ remove }) => remove(),
);
const database = useDatabase({ template: "platform" });
const owner = useClient(database.ownerUrl);
beforeAll(() =>
  owner.query(`
    create table public.notes (id int primary key, owner bigint, title text);
    alter table public.notes enable row level security;
    create policy own on public.notes using (owner = auth.uid());
    grant select on public.notes to authenticated;
    insert into public.notes values (1, ${ADA}, 'my first note'), (2, ${ADA + 1}, 'another')`),
);
const service = useService({
  database,
  settings: () => ({ BASE_SCHEMA: "platform", FUNCTIONS_DIR: project.folder }),
});

/** The service notices new folders a moment after they were written. */
function untilNoticed(commands: string): string {
  const [, name] = /^mkdir -p functions\/(\w+)$/m.exec(commands) ?? [];
  const status = `"$(curl -s -o /dev/null -w '%{http_code}' ${service.url}/functions/v1/${name})"`;
  return name ? `${commands}until [ ${status} != 404 ]; do sleep 0.1; done\n` : commands;
}

test("functions answer what the page shows", async () => {
  const page = await readFile(join(REPOSITORY, "docs/functions.md"), "utf8");
  const environment = {
    ...inClone(database),
    ANON_KEY: tokenOf({ role: "anon" }),
    TOKEN: tokenOf({ role: "authenticated", sub: String(ADA) }),
  };
  const options = { folder: dirname(project.folder), environment, install: untilNoticed, address: service.url };
  const steps = await followTutorial(requestsOf(page), options);
  expect(steps.filter(({ expected }) => expected !== null)).toHaveLength(3);
  expect(steps.filter((step) => !isAsPublished(step))).toEqual([]);
});
