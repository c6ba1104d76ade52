export { errorReferenceRoutes, makeErrorPage } from "./error-page.ts";
export { Html, html, makeRenderPage, type PageContent, type RenderPage, seeOther } from "./page.ts";
export { startPageLinks, startPageRoutes } from "./start-page.ts";
