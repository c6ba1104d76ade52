import type { WebSocket } from "ws";
import { signClaims } from "../comparison/sign-claims.ts";
import { subscribe } from "./subscriber.ts";

/** A table with a policy that decides who sees a row. */
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

/** Opens a client that subscribes to all changes of the table. */
export function joinNews(base: URL, caller: number): Promise<WebSocket> {
  return subscribe(base, signClaims({ role: "authenticated", sub: String(caller) }), { table: "news" });
}
