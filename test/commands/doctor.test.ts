import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { withClient } from "../../engine/with-client.ts";
import { cloneDatabase } from "../database.ts";
import { runCommand } from "./run-command.ts";

let database: Awaited<ReturnType<typeof cloneDatabase>>;
beforeAll(async () => {
  database = await cloneDatabase("content");
});
afterAll(() => database.drop());

const PRODUCTION = { NODE_ENV: "production", PUBLIC_URL: "https://content.example.org" };
const doctor = () => runCommand("doctor", [], database, PRODUCTION);

describe("npm run doctor", () => {
  test("finds no danger in the database that we make, and tells of a table that is left open by its exit code", async () => {
    expect((await doctor()).code).toBe(0);
    await withClient(database.ownerUrl, (client) =>
      client.query("create table public.plans (id int primary key); grant select on public.plans to anon"),
    );
    const { stdout, code } = await doctor();
    expect(stdout).toContain('danger  Every row of "public"."plans" is open');
    expect(stdout).toContain('alter table "public"."plans" enable row level security;');
    expect(code).toBe(1);
  });
});
