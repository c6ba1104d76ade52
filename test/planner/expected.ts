/** The parts of statements that are the same in all of them. */
const SETTINGS =
  "nullif(pg_catalog.current_setting('response.headers', true), ''), nullif(pg_catalog.current_setting('response.status', true), '')";

export const JSON_ROWS = `coalesce(pg_catalog.json_agg("_".*), '[]')`;

type Parts = { readonly body?: string; readonly total?: string; readonly with?: string; readonly more?: string };

/** The statement that answers with these rows. */
export function answering(rows: string, { body = JSON_ROWS, total = "null", with: before, more }: Parts = {}): string {
  const list = [body, "pg_catalog.count(*)", total, SETTINGS, ...(more === undefined ? [] : [more])].join(", ");
  return `${before === undefined ? "" : `with ${before} `}select ${list} from (${rows}) "_"`;
}
