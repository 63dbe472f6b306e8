// SPDX-License-Identifier: Apache-2.0
//
// The view is in the address, after '#': "#/cluster/4c664d5b85?sort=time". Every
// view can be linked to, and Back works. Parameters that only steer a view
// (a search, a sort order) replace the entry instead of adding one.

export interface Route {
  view: string;
  target: string;
  parameters: URLSearchParams;
}

export function current(): Route {
  const [path = "", query = ""] = location.hash.replace(/^#\/?/, "").split("?", 2);
  const [view = "", ...rest] = path.split("/");
  let target = rest.join("/");
  try {
    target = decodeURIComponent(target);
  } catch {
    // An address typed by hand; taken as it is.
  }
  return { view, target, parameters: new URLSearchParams(query) };
}

export function to(view: string, target = "", parameters: Record<string, string> = {}): string {
  const query = new URLSearchParams(parameters).toString();
  return `#/${view}${target ? `/${encodeURIComponent(target)}` : ""}${query ? `?${query}` : ""}`;
}

export function setParameter(name: string, value: string): void {
  const route = current();
  if (value) route.parameters.set(name, value);
  else route.parameters.delete(name);
  const query = route.parameters.toString();
  const path = location.hash.replace(/^#\/?/, "").split("?")[0] ?? "";
  history.replaceState(null, "", `#/${path}${query ? `?${query}` : ""}`);
}
