import { runMigrations } from "#migrate";
import { type Scratch, startScratch } from "../measuring/scratch.ts";

export const ARTICLES = 2_000;
export const USERS = 1_000;
const COMMENTS = 5_000;

/** The first user, the author of two articles. */
export const CALLER = "1";

const ROWS = `
  insert into users (name, email, age)
    select 'User ' || n, 'user' || n || '@example.org', 20 + n % 50 from generate_series(1, ${USERS}) n;
  insert into articles (title, content, status, author_id, tags, created_at)
    select 'Title ' || n, repeat('content ', 25), 'PUBLISHED', 1 + n % ${USERS}, array['tag' || n % 7, 'tag' || n % 11],
      timestamptz '2026-01-01' + n * interval '1 minute'
    from generate_series(1, ${ARTICLES}) n;
  insert into comments (article_id, author_id, content)
    select 1 + n % ${ARTICLES}, 1 + n % ${USERS}, 'comment ' || n from generate_series(1, ${COMMENTS}) n;
`;

/** Starts a cluster with the content service's own database and some content. */
export async function startContent(): Promise<Scratch> {
  const scratch = await startScratch("");
  const url = scratch.url("postgres");
  const other = (name: string) => url.replace("/postgres?", `/${name}?`);
  await runMigrations({ name: "migrate" }, { url, rootUrl: other("template1"), shadowUrl: other("shadow") });
  await scratch.execute(ROWS);
  await scratch.execute("vacuum analyze");
  await scratch.execute("checkpoint");
  return scratch;
}
