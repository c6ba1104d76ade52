import type { Routes } from "../../gateway.ts";
import { mailPages } from "./mail.ts";
import type { PageServices } from "./services.ts";
import { signInPages } from "./sign-in.ts";
import { signUpPages } from "./sign-up.ts";

/** Signing in by hand: pages of this server alone, that work without scripts. */
export function authPages(services: PageServices): Routes {
  return { ...signInPages(services), ...signUpPages(services), ...mailPages(services) };
}
