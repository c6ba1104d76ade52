import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { createClient } from "@supabase/supabase-js";
import jwt from "jsonwebtoken";
import { beforeAll, describe, expect, test } from "vitest";
import { withClient } from "../../postgres/client/with-client.ts";
import { useDatabase } from "../database.ts";
import { REPOSITORY } from "../repository.ts";
import { SECRET } from "../secret.ts";
import { useService } from "../serve.ts";

const SECTION = /^## The first file$(.*?)^## /ms;
const PICTURE = Buffer.from("\x89PNG\r\n\x1a\n");

let example: { readonly sql: string; readonly js: string };

beforeAll(async () => {
  const page = await readFile(join(REPOSITORY, "docs/files.md"), "utf8");
  const section = SECTION.exec(page)![1]!;
  const block = (language: string) => new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, "ms").exec(section)![1]!;
  example = { sql: block("sql"), js: block("js") };
});
const database = useDatabase();
beforeAll(() => withClient(database.ownerUrl, (client) => client.query(example.sql)));
const service = useService({ database });

const clientOf = (role: string) => createClient(service.url, jwt.sign({ role }, SECRET));

/** A client that has signed in with a new account of no special role. */
async function signIn(email: string) {
  const account = { email, password: "Tangerine-Boat-7" };
  const created = await clientOf("service_role").auth.admin.createUser({ ...account, email_confirm: true });
  expect(created.error).toBeNull();
  const client = clientOf("anon");
  const { data, error } = await client.auth.signInWithPassword(account);
  expect(error).toBeNull();
  expect(data.user!.role).toBe("authenticated");
  return { client, user: data.user! };
}

describe("the first file of the page about files", () => {
  test("is uploaded and read as the page says, by a user who is no administrator", async () => {
    const { client } = await signIn("ada@example.org");
    const AsyncFunction = (async () => {}).constructor as new (
      ...words: string[]
    ) => (supabase: unknown, file: Buffer) => Promise<string>;
    const script = new AsyncFunction("supabase", "file", example.js.replace(/^(?=avatars\.getPublicUrl)/m, "return "));
    const response = await fetch(await script(client, PICTURE));
    expect(response.status).toBe(200);
    expect(response.headers.get("content-type")).toBe("image/png");
    expect(Buffer.from(await response.arrayBuffer())).toEqual(PICTURE);
  });

  test("is refused in the folder of another user, and in that of the account's uuid", async () => {
    const [{ client }, other] = [await signIn("bob@example.org"), await signIn("eve@example.org")];
    const { data } = await other.client.auth.getClaims();
    for (const folder of [data!.claims.sub, other.user.id]) {
      const { error } = await client.storage.from("avatars").upload(`${folder}/face.png`, PICTURE);
      expect(error).toMatchObject({ statusCode: "403" });
    }
  });
});
