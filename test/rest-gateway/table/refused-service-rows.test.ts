import pg from "pg";
import { expect, test } from "vitest";
import { toHttpError } from "../../../http/http-error.ts";
import { toTableError } from "../../../rest-gateway/table/explain-error.ts";
import { useClient, useDatabase } from "../../database.ts";

const database = useDatabase();
const owner = useClient(database.ownerUrl);

/** The error of a statement that no policy binds, such as one of service_role. */
async function refusalOf(statement: string): Promise<pg.DatabaseError> {
  const refused = await owner.query(statement).catch((error: unknown) => error);
  expect(refused).toBeInstanceOf(pg.DatabaseError);
  return refused as pg.DatabaseError;
}

function responsesTo(error: pg.DatabaseError) {
  const audience = { anonymous: false, columnHint: (hint: string | null) => hint };
  return [toTableError(error, audience), toHttpError(error)];
}

test("a refused webhook does not show the secret that it would have had", async () => {
  const error = await refusalOf(
    "insert into api.webhooks (name, table_name, url, role) values ('a', 'users', 'no address', 'service_role')",
  );
  expect(error).toMatchObject({ code: "23514", constraint: "content_service_webhooks_url_form" });
  expect(error.detail).toContain("whsec_");
  for (const response of responsesTo(error)) {
    expect(response).toMatchObject({ status: 400, code: "23514", details: null });
    expect(JSON.stringify(response)).not.toContain("whsec_");
  }
});

test("no table of accounts, of the service's own records or with secrets shows a refused row", async () => {
  const { rows } = await owner.query<{ statement: string }>(`
    select format('insert into %I.%I (%I) overriding system value values (null)', nspname, relname, attname) as statement
    from pg_attribute join pg_class on pg_class.oid = attrelid join pg_namespace on pg_namespace.oid = relnamespace
    where (nspname in ('auth', 'content_service') or (nspname, relname) = ('api', 'webhooks')) and relkind in ('r', 'p') and attnum > 0 and not attisdropped
      and attnotnull and attgenerated = '' order by 1`);
  let refused = 0;
  for (const { statement } of rows) {
    const error = await refusalOf(statement);
    if (error.detail?.startsWith("Failing row contains")) refused++;
    for (const response of responsesTo(error)) expect(String(response.details)).not.toContain("Failing row");
  }
  expect(refused).toBeGreaterThan(20);
});

test("other tables show it, as at PostgREST", async () => {
  const error = await refusalOf("insert into public.users (name, email, age) values ('Ada', 'ada@example.org', 200)");
  for (const response of responsesTo(error)) expect(response.details).toContain("Failing row contains");
});
