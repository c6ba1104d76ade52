import { type ChildProcess, spawn } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import jwt from "jsonwebtoken";
import { afterAll, beforeAll, expect, test } from "vitest";
import { useClient, useDatabase } from "../database.ts";
import { REPOSITORY } from "../repository.ts";
import { SECRET } from "../secret.ts";
import { useService } from "../serve.ts";
import { until } from "../until.ts";
import { ADDRESS } from "./five-minutes.ts";

const SECTION = /^## Live queries\n(.*?)^## /ms;
const BLOCK = /^```(sh|text|sql)\n(.*?)^```$/gms;

const database = useDatabase({ template: "platform" });
const owner = useClient(database.ownerUrl);
beforeAll(() =>
  owner.query(`
    create table public.articles (id bigint primary key, title text);
    create table public.comments (
      id bigint generated always as identity primary key, article_id bigint references public.articles, content text);
    grant select on public.articles, public.comments to anon;
    insert into public.articles values (1, 'Hello')`),
);
const service = useService({ database, settings: { BASE_SCHEMA: "platform" } });

const clients: ChildProcess[] = [];
afterAll(() => {
  for (const client of clients) client.kill();
});

test("a live query sends the events that the page shows", async () => {
  const page = await readFile(join(REPOSITORY, "docs/live-data.md"), "utf8");
  const env = { PATH: process.env.PATH, ANON_KEY: jwt.sign({ role: "anon" }, SECRET) };
  let received = "";
  let events = 0;
  for (const [, language, text] of SECTION.exec(page)![1]!.matchAll(BLOCK)) {
    if (language === "sql") await owner.query(text!);
    else if (language === "sh") {
      const client = spawn("sh", ["-c", `exec ${text!.replace(ADDRESS, service.url)}`], { env });
      clients.push(client);
      client.stdout.on("data", (chunk) => {
        received += chunk;
      });
    } else {
      await until(() => received.split("\n\n").length > events + 1);
      const withoutId = (event: string) => event.trim().replace(/^id: [\dA-F]+\/[\dA-F]+$/m, "id");
      expect(withoutId(received.split("\n\n")[events]!)).toBe(withoutId(text!));
      events++;
    }
  }
  expect(events).toBe(2);
});
