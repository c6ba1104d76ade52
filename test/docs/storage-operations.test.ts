import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { createClient } from "@supabase/supabase-js";
import jwt from "jsonwebtoken";
import { beforeAll, expect, test } from "vitest";
import { useClient, useDatabase } from "../database.ts";
import { REPOSITORY } from "../repository.ts";
import { SECRET } from "../secret.ts";
import { useService } from "../serve.ts";
import { followTutorial, isAsPublished } from "./tutorial.ts";

const SQL = /^```sql\n(.*?)^```$/ms;
const ACCOUNT = { email: "ada@example.org", password: "Tangerine-Boat-7" };

let page: string;

const database = useDatabase({ template: "platform" });
const owner = useClient(database.ownerUrl);
beforeAll(async () => {
  page = await readFile(join(REPOSITORY, "docs/storage-operations.md"), "utf8");
  await owner.query(SQL.exec(page)![1]!);
});
const service = useService({ database, settings: { BASE_SCHEMA: "platform" } });

test("the operations of storage answer what the page shows", async () => {
  const SERVICE_KEY = jwt.sign({ role: "service_role" }, SECRET);
  await createClient(service.url, SERVICE_KEY).auth.admin.createUser({ ...ACCOUNT, email_confirm: true });
  const client = createClient(service.url, jwt.sign({ role: "anon" }, SECRET));
  const { data } = await client.auth.signInWithPassword(ACCOUNT);
  const environment = { PATH: process.env.PATH, SERVICE_KEY, ADA: data.session!.access_token };
  const steps = await followTutorial(page.replace(SQL, ""), { folder: REPOSITORY, environment, address: service.url });
  expect(steps.filter(({ expected }) => expected !== null).length).toBeGreaterThan(12);
  expect(steps.filter((step) => !isAsPublished(step))).toEqual([]);
});
