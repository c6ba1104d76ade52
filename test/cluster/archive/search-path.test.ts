import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { loadCatalog } from "../../../catalog/load-catalog.ts";
import { restoreArchive } from "../../../cluster/archive/restore-archive.ts";
import { writeArchive } from "../../../cluster/archive/write-archive.ts";
import { dumpSchema } from "../../../migrate/dump-schema.ts";
import { withClient } from "../../../postgres/client/with-client.ts";
import { cloneDatabase, urlOf } from "../../database.ts";
import { createHostileSchema } from "../../hostile-schema.ts";

const OWN = `
  create schema shop;
  create type shop.mood as enum ('good', 'bad');
  create table shop.orders (id bigint primary key, mood shop.mood, tags text[] default '{}', at timestamptz default now(),
    doubled bigint generated always as (id * 2) stored, check (id > 0));
  alter table shop.orders enable row level security;
  create policy own on shop.orders for select using (id > 1 and mood <> 'bad');
  create view shop.good as select id, tags from shop.orders where mood = 'good';
  insert into shop.orders (id, mood) values (1, 'good'), (2, 'bad'), (3, null)`;

const options = { schemas: ["shop"], extraSearchPath: [], loginRole: "authenticator" };

const ownObjects = (dump: string) =>
  dump
    .trim()
    .split("\n\n")
    .filter((object) => /^-- \w[^\n]*\bshop\b/.test(object));

test("backup, restore, the dump and the catalogue call nothing that has the name of something of Postgres", async () => {
  const [source, target] = await Promise.all([cloneDatabase("empty"), cloneDatabase("empty")]);
  const folder = await mkdtemp(join(tmpdir(), "search-path-"));
  try {
    const file = join(folder, "backup.gz");
    await withClient(source.ownerUrl, (client) => client.query(OWN));
    const before = await withClient(source.ownerUrl, dumpSchema);
    expect(ownObjects(before).length).toBeGreaterThan(3);
    expect((await writeArchive(source.ownerUrl, file)).rows).toBe(3);
    await withClient(target.ownerUrl, (client) => createHostileSchema(client, { fails: true }));
    const settings = { url: target.ownerUrl, shadowUrl: "", rootUrl: urlOf("postgres", "postgres"), histories: [] };
    await restoreArchive(file, settings);
    await withClient(target.ownerUrl, async (client) => {
      const { catalog } = await loadCatalog(client, options);
      expect(catalog.findTable({ schema: "shop", name: "orders" })?.columns.size).toBe(5);
      await writeArchive(target.ownerUrl, join(folder, "again.gz"));
      expect(ownObjects(await dumpSchema(client))).toEqual(ownObjects(before));
    });
  } finally {
    await rm(folder, { recursive: true });
    await Promise.all([source.drop(), target.drop()]);
  }
});
