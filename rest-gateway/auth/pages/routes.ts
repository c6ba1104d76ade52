import type { Routes } from "../../gateway.ts";
import { makeRenderPage } from "../../pages/page.ts";
import { mailPages } from "./mail.ts";
import type { PageServices } from "./services.ts";
import { signInPages } from "./sign-in.ts";
import { signUpPages } from "./sign-up.ts";

type Options = Omit<PageServices, "render"> & { readonly formTargets: readonly string[] };

/** Signing in by hand: pages of this server alone, that work without scripts. */
export function authPages({ formTargets, ...services }: Options): Routes {
  const pages = { ...services, render: makeRenderPage({ formTargets }) };
  return { ...signInPages(pages), ...signUpPages(pages), ...mailPages(pages) };
}
