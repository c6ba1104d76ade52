import type { Routes } from "../../gateway.ts";
import { emailPages } from "./email-pages.ts";
import type { PageDependencies } from "./page-dependencies.ts";
import { signInPages } from "./sign-in-pages.ts";
import { signUpPages } from "./sign-up-pages.ts";

/** Sign-in pages, which work without scripts. */
export function authPages(services: PageDependencies): Routes {
  return { ...signInPages(services), ...signUpPages(services), ...emailPages(services) };
}
