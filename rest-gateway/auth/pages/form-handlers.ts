import { type ApiError, toApiError } from "../../../engine/errors.ts";
import type { GatewayRequest, GatewayResponse, Handler } from "../../http.ts";
import type { Page } from "../../pages/page.ts";
import type { PageDependencies } from "./page-dependencies.ts";
import { readForm } from "./read-form.ts";
import type { RejectedForm } from "./render-form.ts";

/** A page with a form. */
export type FormPage = {
  show(values: URLSearchParams, refused: RejectedForm | null): Page | Promise<Page>;
  submit(values: URLSearchParams, request: GatewayRequest): Promise<GatewayResponse>;
};

/** GET and POST handlers of a form page. A rejected form is shown again with the error. */
export function formHandlers(
  { show, submit: take }: FormPage,
  { render, crossSite }: Pick<PageDependencies, "render" | "crossSite">,
): Readonly<Record<"GET" | "POST", Handler>> {
  return {
    GET: async ({ rawQuery }) => render(await show(new URLSearchParams(rawQuery), null)),
    POST: async (request) => {
      const values = await readForm(request);
      try {
        crossSite.guard(request, null);
        return await take(values, request);
      } catch (thrown) {
        const error = toFormError(thrown);
        const page = await show(values, { values, error });
        return render({ ...page, status: error.status, headers: { ...page.headers, ...error.headers } });
      }
    },
  };
}

/** Rethrows unexpected errors, which the gateway logs and answers. */
function toFormError(thrown: unknown): ApiError {
  const error = toApiError(thrown);
  if (error.status >= 500 && error !== thrown) throw error;
  return error;
}
