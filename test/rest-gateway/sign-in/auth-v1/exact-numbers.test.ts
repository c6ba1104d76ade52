import { randomUUID } from "node:crypto";
import { beforeAll, expect, test } from "vitest";
import { importAccounts, readAccountRows } from "../../../../accounts/import-accounts.ts";
import { parseJsonExactly } from "../../../../runtime/json/json-values.ts";
import { useFixture } from "../../../fixture.ts";
import { openOperatedService, PASSWORD } from "../../../operations/admin/operated-service.ts";
import { until } from "../../../until.ts";

/** JavaScript rounds it to 9007199254740992. */
const ORG = "9007199254740993";
const TENANT = "12345678901234567891";

const operated = useFixture(() => openOperatedService({ CLAIMS_HOOK: "public.add_tenant" }));
beforeAll(() =>
  operated.owner.query(`
    create function public.add_tenant(event jsonb) returns jsonb language sql as $$
      select jsonb_set(event, '{claims}', (event -> 'claims') || '{"tenant": ${TENANT}}') $$;
    grant execute on function public.add_tenant to supabase_auth_admin;
    grant usage on schema public to supabase_auth_admin`),
);

const send = (path: string, body: unknown, token = operated.tokens.service) =>
  operated.send(path, { token, headers: { apikey: token }, body });
const claimsTextOf = (token: string) => Buffer.from(token.split(".")[1]!, "base64url").toString();

async function signIn(email: string) {
  const { body } = await send("/auth/v1/token?grant_type=password", { email, password: PASSWORD });
  return body;
}

test("numbers in metadata and of CLAIMS_HOOK have all digits in the tokens of a sign-in, of its refresh and of view as", async () => {
  const email = `${randomUUID()}@example.org`;
  const metadata = parseJsonExactly(`{"org": ${ORG}}`);
  const account = { email, password: PASSWORD, email_confirm: true, app_metadata: metadata };
  const made = await send("/auth/v1/admin/users", account);
  expect(made.text).toContain(`"org":${ORG}`);
  const { access_token: first, refresh_token } = await signIn(email);
  const refreshed = await send("/auth/v1/token?grant_type=refresh_token", { refresh_token });
  const viewed = await send("/admin/v1/view-as", { user: made.body.id }, operated.tokens.admin);
  for (const token of [first, refreshed.body.access_token, viewed.body.access_token]) {
    expect(claimsTextOf(token)).toContain(`"org":${ORG}`);
    expect(claimsTextOf(token)).toContain(`"tenant":${TENANT}`);
  }
  const changed = await operated.send("/auth/v1/user", {
    method: "PUT",
    token: first,
    headers: { apikey: first },
    body: { data: parseJsonExactly(`{"number": ${TENANT}}`) },
  });
  expect(changed.text).toContain(`"number":${TENANT}`);
  expect(changed.text).toContain(`"org":${ORG}`);
});

test("claims that /admin/v1/why is given keep all digits", async () => {
  await operated.owner.query(`
    create table public.budgets (org numeric);
    alter table public.budgets enable row level security;
    grant select on public.budgets to authenticated;
    create policy own on public.budgets to authenticated using (org = (auth.jwt() ->> 'org')::numeric);
    insert into public.budgets values (${ORG}), (${ORG} - 1)`);
  const as = { role: "authenticated", claims: parseJsonExactly(`{"org": ${ORG}}`) };
  const explain = () => send("/admin/v1/why", { path: `/rest/v1/budgets?org=eq.${ORG}`, as }, operated.tokens.admin);
  await until(async () => (await explain()).body.refusal === null);
  expect((await explain()).body).toMatchObject({ visible: 1, total: 1 });
});

test("imported accounts keep the numbers of their metadata", async () => {
  const id = randomUUID();
  const rows = readAccountRows(
    `{"users": [{"id": "${id}", "email": "${id}@example.org", "raw_app_meta_data": {"org": ${ORG}}}]}`,
  );
  const client = await operated.owner.connect();
  await importAccounts((work) => work(client), rows).finally(() => client.release());
  const { rows: stored } = await operated.owner.query(
    "select raw_app_meta_data ->> 'org' as org from auth.users where id = $1",
    [id],
  );
  expect(stored).toEqual([{ org: ORG }]);
});
