import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { createClient } from "@supabase/supabase-js";
import jwt from "jsonwebtoken";
import { beforeAll, describe, expect, test } from "vitest";
import { useClient, useDatabase } from "../database.ts";
import { useFolder } from "../fixture.ts";
import { REPOSITORY } from "../repository.ts";
import { SECRET } from "../secret.ts";
import { useService } from "../serve.ts";
import { inClone } from "./in-clone.ts";
import { followTutorial, isAsPublished } from "./tutorial.ts";

const PASSWORD = "Tangerine-Boat-7";
const SCRIPT = /^```js\n(.*?)^```$/gms;
const SQL = /^```sql\n(.*?)^```$/gms;

describe.each(["content", "platform"] as const)(
  "in a project of the template %s, the patterns of tables",
  (template) => {
    let page: string;

    const database = useDatabase({ template });
    const owner = useClient(database.ownerUrl);
    const folder = useFolder("content-service-patterns-");
    beforeAll(async () => {
      page = await readFile(join(REPOSITORY, "docs/table-patterns.md"), "utf8");
      for (const [, text] of page.matchAll(SQL)) await owner.query(text!);
    });
    const service = useService({ database, settings: { BASE_SCHEMA: template } });

    test("show to whom their rows and files are visible", async () => {
      const environment = { ...inClone(database), BASE_SCHEMA: template, TMPDIR: folder };
      const requests = page.replaceAll(SCRIPT, "").replaceAll(SQL, "");
      const steps = await followTutorial(requests, { folder: REPOSITORY, environment, address: service.url });
      expect(steps.filter(({ expected }) => expected !== null).length).toBeGreaterThan(10);
      expect(steps.filter((step) => !isAsPublished(step))).toEqual([]);
    });

    test("change the avatar of a user by supabase-js", async () => {
      const email = "eve@example.org";
      const clientOf = (role: string) => createClient(service.url, jwt.sign({ role }, SECRET));
      await clientOf("service_role").auth.admin.createUser({ email, password: PASSWORD, email_confirm: true });
      const supabase = clientOf("anon");
      await supabase.auth
        .signInWithPassword({ email, password: PASSWORD })
        .then(({ error }) => expect(error).toBeNull());
      await supabase.from("profiles").insert({ name: "Eve" }).throwOnError();
      const AsyncFunction = (async () => {}).constructor as new (
        ...words: string[]
      ) => (supabase: unknown, file: Blob) => Promise<void>;
      const [, script] = page.match(new RegExp(SCRIPT, "ms"))!;
      await new AsyncFunction("supabase", "file", script!)(supabase, new Blob(["\x89PNG"], { type: "image/png" }));
      const { data } = await supabase.from("profiles").select("avatar_url").eq("name", "Eve").single().throwOnError();
      expect((await fetch(service.url + data.avatar_url)).status).toBe(200);
    });
  },
);
