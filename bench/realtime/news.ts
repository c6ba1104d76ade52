import { makeTokenKeys } from "../../engine/caller/keys.ts";
import { signToken } from "../../engine/caller/tokens.ts";
import { JWT_SECRET } from "../contest/tokens.ts";

/** A table with a policy that has to be asked who sees a row. */
export const NEWS = `
  create role anon;
  create role authenticated;
  create role authenticator login noinherit;
  grant anon, authenticated to authenticator;
  create schema auth;
  grant usage on schema auth to anon, authenticated;
  create function auth.jwt() returns jsonb language sql stable
    return nullif(current_setting('request.jwt.claims', true), '')::jsonb;
  create table news (id bigint generated always as identity primary key, owner text, title text, body text);
  alter table news replica identity full;
  alter table news enable row level security;
  create policy own_and_shared on news for select using (owner is null or owner = (select auth.jwt() ->> 'sub'));
  grant select on news to anon, authenticated;
  create publication supabase_realtime for table news`;

const keys = makeTokenKeys({ jwtSecret: JWT_SECRET, jwtSecretIsBase64: false, jwtPrivateKey: null });

/** What a caller connects to. */
export function socketUrl({ host }: URL, caller: number): string {
  const token = signToken({ role: "authenticated", sub: String(caller) }, keys, { timestamp: false });
  return `ws://${host}/realtime/v1/websocket?vsn=2.0.0&apikey=${token}`;
}

/** What asks for all changes of the table. */
export const JOIN = JSON.stringify([
  "1",
  "1",
  "realtime:news",
  "phx_join",
  { config: { postgres_changes: [{ event: "*", schema: "public", table: "news" }] } },
]);
