export { errorReferenceRoutes, makeErrorPage } from "./error-page.ts";
export { Html, html, MARK, makeRenderPage, type PageContent, type RenderPage, seeOther } from "./page.ts";
export { PRODUCT_ICON, PRODUCT_NAME } from "./product.ts";
export { startPageLinks, startPageRoutes } from "./start-page.ts";
