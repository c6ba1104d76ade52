import { afterAll, expect, test } from "vitest";
import { useFixture } from "../../fixture.ts";
import { anonKey, openRealtimeFixture, token } from "../../realtime/service.ts";
import { countResults } from "./count-runs.ts";
import { EventClient } from "./event-client.ts";

/** The function `uid` is `auth.uid()` as Supabase defines it. */
const SCHEMA = `
  create function public.uid() returns text language sql stable as $$
    select coalesce(
      nullif(current_setting('request.jwt.claim.sub', true), ''),
      (nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'sub')
    ) $$;
  create function public.is_own(owner text) returns boolean language plpgsql stable security definer set search_path = '' as $$
    declare person text := auth.jwt() ->> 'sub';
    begin
      if person is null then return false; end if;
      return owner = person;
    end $$;
  grant execute on function public.uid, public.is_own to authenticated;
  create table public.plans (id int primary key, owner text not null);
  create table public.drafts (id int primary key, owner text not null);
  alter table public.plans enable row level security;
  alter table public.drafts enable row level security;
  create policy own on public.plans for select using (owner = public.uid());
  create policy own on public.drafts for select using (public.is_own(owner));
  grant select on public.plans, public.drafts to authenticated`;

const fixture = useFixture(() => openRealtimeFixture(SCHEMA, { ADMIN_PORT: "0" }));

const clients: EventClient[] = [];
afterAll(() => {
  for (const client of clients) client.close();
});

async function open(table: string, sub: string, renewed: number): Promise<EventClient> {
  const authorization = `Bearer ${token({ sub, role: "authenticated", renewed })}`;
  const url = `${fixture.service.url}/rest/v1/${table}?select=id&order=id`;
  const client = await EventClient.open(url, { apikey: anonKey, authorization });
  clients.push(client);
  return client;
}

test.each([
  ["the function of Supabase", "plans"],
  ["a function in PL/pgSQL", "drafts"],
])(
  "by a policy with %s, a new token of an account shares the result of the earlier one, and no other account does",
  async (_function, table) => {
    const before = await countResults(fixture.service);
    const [first, renewed] = [await open(table, "ann", 1), await open(table, "ann", 2)];
    const other = await open(table, "bob", 1);
    expect((await countResults(fixture.service)) - before).toBe(2);
    await fixture.owner.query(`insert into public.${table} values (1, 'ann'), (2, 'bob')`);
    await Promise.all([first, renewed].map((client) => client.untilResult([{ id: 1 }])));
    await other.untilResult([{ id: 2 }]);
    expect(other.results).not.toContain('[{"id":1}]');
  },
);
