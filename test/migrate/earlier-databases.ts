import { readFile } from "node:fs/promises";
import { brotliDecompressSync } from "node:zlib";
import { type OwnHistories, ownHistories } from "./own-histories.ts";

/** The project's migration, whose number is one of the release's, too. */
export const PROJECT = `create table public.tags (id int primary key, name text, article_id bigint references public.articles);
create function public.nothing() returns void language sql as 'select';
grant execute on function public.nothing to service_role;`;

/**
 * Dumps of databases that these versions migrated and served, with the example application and a project's migration: two accounts that
 * signed in, one of them with a role and a provider, an API key, articles, a kept response, a queued call, a schedule, and a webhook with a
 * delivery that waits. The last one has files and an upload in parts, too, and objects of the project beside those of the service.
 */
export const VERSIONS = [
  { commit: "6bd84e18", file: "platform-000055.sql.br", key: "key_7XClVUS7CcYnWsxE8qSh6Z5a6R11pbjoHoQpfuE9ogg" },
  { commit: "431b9694", file: "platform-000070.sql.br", key: "key_3M27ocWqYNJdmlugU5qvPwqiu5BR4fV77nJ6A02cW0g" },
  { commit: "a0c93425", file: "platform-000026.sql.br", key: "key_3M27ocWqYNJdmlugU5qvPwqiu5BR4fV77nJ6A02cW0g" },
];

/**
 * The same of the version with one history of migrations, which had neither schedules nor webhooks: besides, a second factor with backup
 * codes, a session, a mail that waits to be used, and a key of a user.
 */
export const SINGLE_HISTORY_VERSION = {
  commit: "5c10d4c",
  file: "single-000057.sql.br",
  key: "key_5aREdV2EjpTsV0IzV1ZJZqmzOo14n5LkhhoVIuekth0",
  /** As `migrate commit` wrote it, with the name of the file in `current/`. */
  project: `--! split: 0010-tags.sql\n${PROJECT}`,
};

/** Drops the objects of the project that a dump has and its migration does not create. */
export const DROP_OWN_OBJECTS = `drop schema if exists private cascade; drop table if exists public.own_rows;
  drop function if exists public.own_bound`;

type EarlierVersion = { readonly file: string; readonly project?: string };

export async function databaseOf({ file, project = PROJECT }: EarlierVersion): Promise<OwnHistories> {
  const own = await ownHistories();
  await own.add("project", "tags", project);
  await own.rows(brotliDecompressSync(await readFile(new URL(`earlier/${file}`, import.meta.url))).toString("utf8"));
  return own;
}
