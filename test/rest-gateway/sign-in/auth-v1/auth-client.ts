import { randomUUID } from "node:crypto";
import { createClient, type SupabaseClient } from "@supabase/supabase-js";
import jwt from "jsonwebtoken";
import { SECRET } from "../../../secret.ts";

export const PASSWORD = "Tangerine-Boat-7";
export const ANON_KEY = jwt.sign({ role: "anon" }, SECRET);

/** Makes a client like an application for Supabase. */
// biome-ignore lint/suspicious/noExplicitAny: the client calls rows of unknown tables any.
export function makeClient(url: string, auth: object = {}, key = ANON_KEY): SupabaseClient<any, any, any> {
  return createClient(url, key, { auth: { persistSession: false, autoRefreshToken: false, ...auth } });
}

export function newAddress(): string {
  return `${randomUUID()}@example.org`;
}
