import type { WebSocket } from "ws";
import { signClaims } from "../comparison/sign-claims.ts";
import { ROLES_WITH_CLAIMS } from "../measuring/schema.ts";
import { subscribe } from "./subscriber.ts";

/** A table with a policy that decides who sees a row. */
export const NEWS = `${ROLES_WITH_CLAIMS}
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
