import { beforeAll, describe, expect, test } from "vitest";
import { withClient } from "../../../postgres/client/with-client.ts";
import { useDatabase } from "../../database.ts";
import { type CommandResult, runCommand } from "./run-command.ts";

const database = useDatabase();

const PRODUCTION = { NODE_ENV: "production", PUBLIC_URL: "https://content.example.org" };
const doctor = (...options: readonly string[]) => runCommand("doctor", options, database, PRODUCTION);
const lastLine = (text: string) => text.trimEnd().split("\n").at(-1);

const PROBLEMS = `
  create table public.plans (id int primary key);
  grant select on public.plans to anon;
  create function public.search(keyword text, language text) returns int language sql stable as 'select 1';
  create function public.bump(x int, translations public.article_translations[]) returns int language sql as 'select 1';
  revoke insert on public.article_translations from authenticated, admin;
  grant execute on function public.search(text, text), public.bump(int, public.article_translations[]) to anon;
  create table public."ARTICLES" (id int primary key);
  comment on table public."ARTICLES" is 'Old ones.';
  grant select on public."ARTICLES" to anon`;

describe("npm run doctor", () => {
  test("finds no danger in a migrated database, and with --strict fails for advice", async () => {
    const { code, stdout, stderr } = await doctor();
    expect([code, stdout]).toEqual([0, expect.not.stringContaining("GraphQL is served without")]);
    expect(stderr).toBe("");
    expect(lastLine(stdout)).toMatch(/^\d+ pieces? of advice$/);
    expect((await doctor("--strict")).code).toBe(3);
  });
});

describe("npm run doctor, in a database with problems,", () => {
  let found: CommandResult;
  beforeAll(async () => {
    await withClient(database.ownerUrl, (client) => client.query(PROBLEMS));
    found = await doctor();
  });

  test("prints JSON with the numbers of findings, and the SQL for a migration", async () => {
    const { stdout, code } = await doctor("--json");
    const { findings, summary } = JSON.parse(stdout);
    expect(findings).toContainEqual({
      kind: "danger",
      problem: expect.stringContaining('Every row of "public"."plans" is accessible'),
      fix: 'alter table "public"."plans" enable row level security;',
      sql: 'alter table "public"."plans" enable row level security;',
    });
    const count = (wanted: string) => findings.filter(({ kind }: { kind: string }) => kind === wanted).length;
    expect(summary).toEqual({ errors: count("danger"), advice: count("advice"), slow: count("slow") });
    expect(summary.errors).toBeGreaterThan(0);
    expect(code).toBe(1);
    expect((await doctor("--names", "--json")).code).toBe(2);
  });

  test("fails for a table without row-level security", () => {
    expect(found.stdout).toContain('error   Every row of "public"."plans" is accessible');
    expect(found.stdout).toContain('alter table "public"."plans" enable row level security;');
    expect(lastLine(found.stdout)).toMatch(/^\d+ errors?, \d+ pieces? of advice(, |$)/);
    expect(found.code).toBe(1);
  });

  test("names the objects that GraphQL is served without, and the reasons", () => {
    expect(found.stdout).toContain(
      "advice  GraphQL is served without function public.search(text, text): public.search(text) was created before it and has its name.",
    );
    expect(found.stdout).toContain("comment on function public.search(text, text) is '@name another_name';");
    expect(found.stdout).toContain(
      "advice  GraphQL is served without function public.bump(int4, public.article_translations[]): the schema cannot be built with it:",
    );
  });

  test("lists the names of each table in every interface, and reports tables with another path than their name", async () => {
    expect(found.stdout).toContain(
      'advice  "public"."ARTICLES" is served at /api/v1/articles-2, because "public"."articles" has the path of that name.',
    );
    expect(found.stdout).toContain(`comment on table "public"."ARTICLES" is '@address another-name\nOld ones.';`);
    const names = await runCommand("doctor", ["--names"], database, PRODUCTION);
    expect(names.code).toBe(0);
    const lines = names.stdout.split("\n").map((line) => line.split(/ {2,}/));
    expect(lines).toContainEqual(["public.articles", "/api/v1/articles", "Article articles article"]);
    expect(lines).toContainEqual([
      "public.ARTICLES",
      "/api/v1/articles-2",
      "ArticleRecord articleRecords articleRecord",
    ]);
  });
});
