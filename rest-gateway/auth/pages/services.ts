import type { PasswordPolicy } from "../../../engine/auth/password-policy.ts";
import type { RenderPage } from "../../pages/page.ts";
import type { CostlyServices } from "../services.ts";

/** Another provider that users may sign in through. */
export type OfferedProvider = { readonly name: string; readonly title: string };

/** What the pages of signing in are made of. */
export type PageServices = Pick<CostlyServices, "accounts" | "crossSite" | "limitExpensive"> & {
  readonly render: RenderPage;
  readonly passwordPolicy: PasswordPolicy;
  readonly providers: () => Promise<readonly OfferedProvider[]>;
  /** Where to go in the end; refuses what is not ours, or of the allowed ones. */
  readonly readTarget: (text: string | null) => string | null;
};
