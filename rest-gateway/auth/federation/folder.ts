import { PROVIDERS_PATH } from "../../../engine/auth/federation/addresses.ts";
import { toApiError } from "../../../engine/errors.ts";
import { notFound } from "../../../engine/wrong-address.ts";
import { dispatch, type Routes } from "../../gateway.ts";
import type { Handler } from "../../http.ts";
import type { RenderPage } from "../../pages/page.ts";
import { confidential } from "../confidential.ts";
import type { AuthServices } from "../services.ts";
import { stepsOf } from "./arrival.ts";
import { codePage, refusalPage, wantsPage } from "./pages.ts";
import { commonRoutes, signInRoutes } from "./sign-in-routes.ts";
import { signOutRoutes } from "./sign-out-routes.ts";

export type FederationServices = AuthServices & {
  readonly render: RenderPage;
  /** Where clients reach us. */
  readonly siteUrl: () => string;
};

/** Signing in through another provider: `/auth/providers`, `/auth/providers/code`, `/auth/providers/{name}/callback` … */
export function federationFolder(services: FederationServices): Readonly<Record<string, Handler>> {
  const common = methodsOf(confidential(commonRoutes(services)));
  const ofProvider = methodsOf(confidential({ ...signInRoutes(services), ...signOutRoutes(services) }));
  const handle: Handler = (request) => {
    const [first = "", second, ...further] = stepsOf(request);
    const methods = second === undefined ? common.get(first) : ofProvider.get(second);
    if (!methods || further.length > 0 || request.path.endsWith("/")) throw notFound();
    return dispatch(methods, request);
  };
  return { [PROVIDERS_PATH]: inPages(handle, services.render) };
}

function methodsOf(routes: Routes): ReadonlyMap<string, ReadonlyMap<string, Handler>> {
  return new Map(Object.entries(routes).map(([path, methods]) => [path, new Map(Object.entries(methods))]));
}

/** A person who is refused reads a page. What nobody foresaw goes the usual way, to the log. */
function inPages(handle: Handler, render: RenderPage): Handler {
  return async (request) => {
    try {
      return await handle(request);
    } catch (thrown) {
      const error = toApiError(thrown);
      if (!wantsPage(request) || error.status === 500) throw error;
      if (error.code !== "INVALID_CODE") return render(refusalPage(error));
      return render(codePage({ values: new URLSearchParams(), error }));
    }
  };
}
