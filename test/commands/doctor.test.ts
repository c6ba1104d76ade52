import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { withClient } from "../../engine/with-client.ts";
import { cloneDatabase } from "../database.ts";

const REPOSITORY = join(import.meta.dirname, "../..");

let database: Awaited<ReturnType<typeof cloneDatabase>>;
beforeAll(async () => {
  database = await cloneDatabase("content");
});
afterAll(() => database.drop());

function doctor(): Promise<{ stdout: string; code?: number }> {
  const env = {
    PATH: process.env.PATH,
    NODE_ENV: "production",
    PUBLIC_URL: "https://content.example.org",
    DATABASE_URL: database.url,
    OWNER_DATABASE_URL: database.ownerUrl,
    JWT_SECRET: "a secret that is long enough to sign with",
  };
  return promisify(execFile)(process.execPath, [join(REPOSITORY, "commands/doctor.ts")], { env }).catch(
    (error) => error,
  );
}

describe("npm run doctor", () => {
  test("finds no danger in the database that we make, and tells of a table that is left open by its exit code", async () => {
    expect(await doctor()).not.toHaveProperty("code");
    await withClient(database.ownerUrl, (client) =>
      client.query("create table public.plans (id int primary key); grant select on public.plans to anon"),
    );
    const { stdout, code } = await doctor();
    expect(stdout).toContain('danger  Every row of "public"."plans" is open');
    expect(stdout).toContain('alter table "public"."plans" enable row level security;');
    expect(code).toBe(1);
  });
});
