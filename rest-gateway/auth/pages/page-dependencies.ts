import type { PasswordPolicy } from "../../../engine/auth/password-policy.ts";
import type { RenderPage } from "../../pages/page.ts";
import type { LimitedAuthDependencies } from "../auth-dependencies.ts";

/** A provider that the sign-in page links to. */
export type ProviderLink = { readonly name: string; readonly title: string };

/** The dependencies of the sign-in pages. */
export type PageDependencies = Pick<LimitedAuthDependencies, "accounts" | "crossSite" | "limitExpensive"> & {
  readonly render: RenderPage;
  readonly passwordPolicy: PasswordPolicy;
  readonly providers: () => Promise<readonly ProviderLink[]>;
  /** Validates the redirect after the sign-in. */
  readonly readTarget: (text: string | null) => string | null;
};
