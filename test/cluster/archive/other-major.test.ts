import { join } from "node:path";
import { expect, test } from "vitest";
import { pgDumpLines } from "../../../bench/archives/compare-restored.ts";
import { restoreArchive } from "../../../cluster/archive/restore-archive.ts";
import { writeArchive } from "../../../cluster/archive/write-archive.ts";
import { withOldCluster } from "../../../cluster/upgrade-cluster.ts";
import { withClient } from "../../../postgres/client/with-client.ts";
import { cloneDatabase, urlOf } from "../../database.ts";
import { useFolder } from "../../fixture.ts";
import { hasOldPostgres, makeOldCluster, OLD_BINARIES } from "../../old-cluster.ts";

/** Default privileges concern functions of extensions too, of which some have other arguments in other majors. */
const OBJECTS = `
  create role backup_reader;
  alter role backup_reader set default_toast_compression = 'lz4';
  alter default privileges revoke execute on functions from public;
  alter default privileges grant select on tables to backup_reader;
  create schema tools; create schema "Odd schema";
  create extension postgres_fdw schema public;
  create extension pg_stat_statements schema tools;
  create extension hstore schema "Odd schema";
  create extension citext schema public;
  create extension pgcrypto schema tools;
  create extension ltree schema "Odd schema";
  grant execute on function tools.pg_stat_statements_reset to backup_reader;
  create table public.notes (
    id integer generated always as identity primary key,
    tags "Odd schema".hstore, place "Odd schema".ltree, mail public.citext unique,
    body text compression lz4 default 'a compression lz4',
    note text compression lz4 generated always as (lower(body)) stored
  );
  insert into public.notes (tags, place, mail, body) values ('a=>1', 'x.y', 'Ada@example.org', repeat('long ', 5000)), (null, null, null, default);
  create index notes_tags on public.notes using gist (tags);
  create function public.digest(value text) returns text language sql as $$ select encode(tools.digest(value, 'sha256'), 'hex') $$;
  grant execute on function public.digest to backup_reader;
  create function public.lower_quietly(value text) returns text language sql set work_mem = '4MB' set force_parallel_mode = off set search_path = ''
    as $$ select pg_catalog.lower(value) $$;
  create server elsewhere foreign data wrapper postgres_fdw options (host 'nowhere.invalid');`;

/** Settings and clauses that the other server may lack. */
const REPLACED = / SET COMPRESSION lz4;|SET force_parallel_mode/;
const embedded = process.env.TEST_POSTGRES === undefined;

const run = (url: string, statement: string) => withClient(url, (client) => client.query(statement));
const dropRole = () => run(urlOf("postgres", "postgres"), "drop role if exists backup_reader");
const settingsFor = (url: string, rootUrl: string) => ({ url, shadowUrl: "", rootUrl, histories: [] });

// The old Postgres runs as another user.
const folder = useFolder("other-major-", 0o755);

test.runIf(hasOldPostgres)(
  "a database with extensions in several schemas goes to another major and back, and pg_dump writes the same of both",
  async () => {
    const target = await cloneDatabase("empty");
    try {
      const cluster = join(folder, "cluster");
      const file = (name: string) => join(folder, `${name}.gz`);
      await makeOldCluster(cluster);
      await withOldCluster(cluster, OLD_BINARIES, async (url) => {
        for (const name of ["source", "copy"]) await run(url("postgres"), `create database ${name}`);
        await run(url("source"), OBJECTS);
        for (const setting of ["default_toast_compression = 'lz4'", "force_parallel_mode = off", "work_mem = '8MB'"])
          await run(url("source"), `alter database source set ${setting}`);
        await writeArchive(url("source"), file("source"));
        const there = await restoreArchive(file("source"), settingsFor(target.ownerUrl, urlOf("postgres", "postgres")));
        // Older majors, and builds with lz4, have some of them.
        for (const warning of there.warnings)
          expect(warning).toMatch(/"default_toast_compression"|"force_parallel_mode"|^table public\.notes .* lz4/);
        if (embedded) expect(there.warnings).toHaveLength(5);
        const read = "select tags, place, mail, md5(body) as body, md5(note) as note from public.notes order by id";
        expect((await run(target.ownerUrl, read)).rows).toEqual((await run(url("source"), read)).rows);
        await writeArchive(target.ownerUrl, file("target"));
        const back = await restoreArchive(file("target"), settingsFor(url("copy"), url("postgres")));
        expect(back.warnings).toEqual([]);
        const dumpOf = async (name: string) =>
          (await pgDumpLines(OLD_BINARIES, url(name))).filter((line) => !REPLACED.test(line));
        const [original, copy] = [await dumpOf("source"), await dumpOf("copy")];
        expect(original.join("\n")).toContain("REVOKE ALL ON FUNCTION public.postgres_fdw_get_connections");
        expect(copy).toEqual(original);
      });
    } finally {
      await target.drop();
      await dropRole();
    }
  },
);
