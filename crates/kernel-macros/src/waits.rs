//! Where the items of a group wait for each other. On hosts each item then lets go of the thread: as a future, if all
//! that it waits at stands in the kernel's own body, where `.await` can follow; otherwise on a stack of its own, which costs
//! several times as much for each item and barrier.
//!
//! So that this can be known, what has the barrier, the item and its group and warp, must not leave the body. Looks at names, not at
//! meaning: one that is seen anywhere but in front of one of its methods may have left.

use std::collections::HashMap;

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use quote::{ToTokens as _, format_ident};
use syn::visit_mut::{self, VisitMut};
use syn::{
    Block, Expr, ExprAsync, ExprClosure, ExprMethodCall, Ident, Item, Local, Macro, Pat,
    parse_quote_spanned,
};

/// What leads to the barrier.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Handle {
    Item,
    Group,
    Warp,
}

/// What a method of a handle does.
enum Use {
    Tells,
    Waits,
    Leads(Handle),
}

impl Handle {
    /// What its method of this name does; `None` if nothing is known of it.
    fn method(self, name: &Ident) -> Option<Use> {
        match (self, name.to_string().as_str()) {
            (
                Self::Item,
                "id" | "range" | "linear_id" | "local_id" | "local_linear_id" | "groups",
            )
            | (Self::Group, "id" | "range" | "len")
            | (Self::Warp, "lane" | "len") => Some(Use::Tells),
            (Self::Group, "barrier" | "broadcast" | "count")
            | (Self::Warp, "shuffle" | "ballot" | "sum")
            | (
                Self::Group | Self::Warp,
                "any" | "all" | "reduce" | "inclusive_scan" | "exclusive_scan",
            ) => Some(Use::Waits),
            (Self::Item, "group") => Some(Use::Leads(Self::Group)),
            (Self::Item, "warp") => Some(Use::Leads(Self::Warp)),
            _ => None,
        }
    }
}

/// The body of a future, for a kernel whose first parameter is `item`; `None` if an item needs a stack of its own.
pub(crate) fn as_future(item: &Pat, body: &Block) -> Option<Block> {
    let mut body = body.clone();
    let mut awaits = Awaits { handles: HashMap::new(), is_cut_off: false, is_future: true };
    match item {
        Pat::Ident(item) => _ = awaits.handles.insert(item.ident.clone(), Handle::Item),
        Pat::Wild(_) => {}
        _ => return None,
    }
    awaits.visit_block_mut(&mut body);
    awaits.is_future.then_some(body)
}

/// Writes `.await` behind what waits.
struct Awaits {
    /// By the names that they have had so far.
    handles: HashMap<Ident, Handle>,
    /// Whether it is in code that is no part of the future.
    is_cut_off: bool,
    /// Whether all that waits could be awaited, and no handle has left.
    is_future: bool,
}

impl Awaits {
    /// The handle that an expression is.
    fn handle(&self, expression: &Expr) -> Option<Handle> {
        match expression {
            Expr::Path(path) => self.handles.get(path.path.get_ident()?).copied(),
            Expr::MethodCall(call) => match self.handle(&call.receiver)?.method(&call.method)? {
                Use::Leads(handle) => Some(handle),
                Use::Tells | Use::Waits => None,
            },
            Expr::Paren(inner) => self.handle(&inner.expr),
            Expr::Group(inner) => self.handle(&inner.expr),
            _ => None,
        }
    }

    /// Gives the parts of a pattern that stand for handles their names, and visits the other parts of what is bound.
    fn bind(&mut self, pattern: &Pat, bound: &mut Expr) {
        match (pattern, bound) {
            (Pat::Type(typed), bound) => self.bind(&typed.pat, bound),
            (Pat::Tuple(patterns), Expr::Tuple(bound))
                if patterns.elems.len() == bound.elems.len() =>
            {
                for (pattern, bound) in patterns.elems.iter().zip(&mut bound.elems) {
                    self.bind(pattern, bound);
                }
            }
            (pattern, bound) => match (pattern, self.handle(bound)) {
                (Pat::Ident(name), Some(handle)) => {
                    self.handles.insert(name.ident.clone(), handle);
                }
                _ => {
                    self.visit_expr_mut(bound);
                    self.is_future &= !self.is_named_again(pattern.to_token_stream());
                }
            },
        }
    }

    /// Whether a pattern gives the name of a handle to something else: whose method is called by that name then, is not known.
    fn is_named_again(&self, pattern: TokenStream) -> bool {
        pattern.into_iter().any(|token| match token {
            TokenTree::Group(group) => self.is_named_again(group.stream()),
            TokenTree::Ident(name) => self.handles.contains_key(&name),
            TokenTree::Punct(_) | TokenTree::Literal(_) => false,
        })
    }

    /// What a call on a handle becomes.
    fn call(&mut self, what: &Use, call: &mut ExprMethodCall) -> Option<Expr> {
        call.args.iter_mut().for_each(|argument| self.visit_expr_mut(argument));
        match what {
            Use::Tells => None,
            Use::Waits => {
                self.is_future &= !self.is_cut_off;
                let span = call.method.span();
                call.method = format_ident!("__{}", call.method);
                Some(parse_quote_spanned!(span => #call.await))
            }
            // To where nobody knows.
            Use::Leads(_) => {
                self.is_future = false;
                None
            }
        }
    }

    /// Whether macros that get `tokens` get no handle with them, nor anything that waits.
    fn stay(&self, tokens: TokenStream) -> bool {
        let tokens: Vec<_> = tokens.into_iter().collect();
        (0..tokens.len()).all(|at| match &tokens[at..] {
            [TokenTree::Group(group), ..] => self.stay(group.stream()),
            [TokenTree::Ident(name), rest @ ..] => {
                self.handles.get(name).is_none_or(|handle| tells(*handle, rest))
            }
            _ => true,
        })
    }

    /// Visits what is no part of the future.
    fn cut_off(&mut self, visit: impl FnOnce(&mut Self)) {
        let before = std::mem::replace(&mut self.is_cut_off, true);
        visit(self);
        self.is_cut_off = before;
    }
}

/// Whether `tokens` are a call on a handle, or more of them, that tells something.
fn tells(handle: Handle, tokens: &[TokenTree]) -> bool {
    let [TokenTree::Punct(dot), TokenTree::Ident(name), TokenTree::Group(arguments), rest @ ..] =
        tokens
    else {
        return false;
    };
    let is_call = dot.as_char() == '.' && arguments.delimiter() == Delimiter::Parenthesis;
    match handle.method(name) {
        Some(Use::Tells) => is_call,
        Some(Use::Leads(handle)) => is_call && tells(handle, rest),
        Some(Use::Waits) | None => false,
    }
}

impl VisitMut for Awaits {
    fn visit_local_mut(&mut self, found: &mut Local) {
        let Some(init) = &mut found.init else {
            return self.visit_pat_mut(&mut found.pat);
        };
        self.bind(&found.pat, &mut init.expr);
        if let Some((_, diverge)) = &mut init.diverge {
            self.visit_expr_mut(diverge);
        }
    }

    fn visit_expr_mut(&mut self, found: &mut Expr) {
        if let Expr::MethodCall(call) = found
            && let Some(what) =
                self.handle(&call.receiver).and_then(|handle| handle.method(&call.method))
        {
            if let Some(becomes) = self.call(&what, call) {
                *found = becomes;
            }
            return;
        }
        if let Expr::Index(found) = found
            && self.handle(&found.expr) == Some(Handle::Item)
        {
            return self.visit_expr_mut(&mut found.index);
        }
        // A handle by itself, or in front of what is no method that is known.
        self.is_future &= self.handle(found).is_none();
        visit_mut::visit_expr_mut(self, found);
    }

    fn visit_pat_mut(&mut self, found: &mut Pat) {
        self.is_future &= !self.is_named_again(found.to_token_stream());
    }

    fn visit_macro_mut(&mut self, found: &mut Macro) {
        self.is_future &= self.stay(found.tokens.clone());
    }

    fn visit_expr_closure_mut(&mut self, found: &mut ExprClosure) {
        self.cut_off(|this| visit_mut::visit_expr_closure_mut(this, found));
    }

    fn visit_expr_async_mut(&mut self, found: &mut ExprAsync) {
        self.cut_off(|this| visit_mut::visit_expr_async_mut(this, found));
    }

    fn visit_item_mut(&mut self, found: &mut Item) {
        self.cut_off(|this| visit_mut::visit_item_mut(this, found));
    }
}

#[cfg(test)]
mod tests {
    use syn::parse::Parser as _;
    use syn::parse2;

    use super::*;

    fn future(body: &str) -> Option<String> {
        let item = Pat::parse_single.parse_str("item").unwrap();
        let body: Block = parse2(body.parse().unwrap()).unwrap();
        as_future(&item, &body).map(|body| body.to_token_stream().to_string())
    }

    #[track_caller]
    fn becomes(body: &str, expected: &str) {
        let expected: Block = parse2(expected.parse().unwrap()).unwrap();
        assert_eq!(future(body), Some(expected.to_token_stream().to_string()));
    }

    #[test]
    fn what_waits_in_the_body_is_awaited() {
        becomes("{ item.group().barrier(); }", "{ item.group().__barrier().await; }");
        becomes(
            "{ let group = item.group(); for i in 0..group.len() { if a { group.barrier(); } } }",
            "{ let group = item.group(); for i in 0..group.len() { if a { group.__barrier().await; } } }",
        );
        becomes(
            "{ let warp = item.warp(); let x = warp.sum(warp.shuffle(x, warp.lane() + 1)); }",
            "{ let warp = item.warp(); let x = warp.__sum(warp.__shuffle(x, warp.lane() + 1).await).await; }",
        );
        becomes(
            "{ let ([at], group, warp) = (item.local_id(), item.group(), item.warp()); x = warp.all(at > 3);
               let other: Group<1> = group; other.barrier(); }",
            "{ let ([at], group, warp) = (item.local_id(), item.group(), item.warp()); x = warp.__all(at > 3).await;
               let other: Group<1> = group; other.__barrier().await; }",
        );
        becomes(
            "{ let sum = (item.warp()).sum::<f32>(x); }",
            "{ let sum = (item.warp()).__sum::<f32>(x).await; }",
        );
        becomes(
            "{ while item.warp().any(x > 1) { x -= 1; } }",
            "{ while item.warp().__any(x > 1).await { x -= 1; } }",
        );
        becomes(
            "{ let (group, warp) = (item.group(), item.warp()); if group.all(x > item[0]) { return; }
               x = group.inclusive_scan(warp.reduce(group.broadcast(x, 3), Max), Sum); }",
            "{ let (group, warp) = (item.group(), item.warp()); if group.__all(x > item[0]).await { return; }
               x = group.__inclusive_scan(warp.__reduce(group.__broadcast(x, 3).await, Max).await, Sum).await; }",
        );
    }

    #[test]
    fn what_never_waits_stays_as_it_is() {
        for body in [
            "{ let [at] = item.local_id(); *out = f(at, item.group().len()); }",
            "{ assert!(item.id()[0] < item.range()[0], \"{}\", item.warp().lane()); }",
            "{ let add = |x| x + item.id()[0] + item[item[1]]; }",
            "{ *out = item.linear_id() + item.groups()[0]; }",
            "{ fence.barrier(); x.item.group(); }",
        ] {
            becomes(body, body);
        }
    }

    #[test]
    fn where_a_handle_may_leave_a_stack_is_needed() {
        for body in [
            "{ meet(item); }",
            "{ meet(&item); }",
            "{ meet(item.group()); }",
            "{ let others = [item; 2]; }",
            "{ let warp = item.warp(); for warp in bits.iter() { x += warp.any(|bit| bit); } }",
            "{ let warp = item.warp(); { let warp = bits.iter(); x = warp.any(|bit| bit); } warp.all(y); }",
            "{ let warp = item.warp(); let f = |warp: Bits| warp.any(1); }",
            "{ let warp = item.warp(); if let Some((_, warp)) = pair { x = warp.sum(); } }",
            "{ let warp = item.warp(); { let warp; warp = 3; } warp.all(y); }",
            "{ let group = item.group(); let other = &group; }",
            "{ let group = item.group(); meet(&group); }",
            "{ let pair = (item.group(), 1); pair.0.barrier(); }",
            "{ let (group, x) = if a { (item.group(), 1) } else { b }; }",
            "{ assert!(item.warp().all(x)); }",
            "{ (0..3).for_each(|_| item.group().barrier()); }",
            "{ let f = || { let group = item.group(); group.barrier(); }; }",
            "{ NdItem::group(&item).barrier(); }",
            "{ item.group().odd(); }",
            "{ use_it!(item); }",
        ] {
            assert_eq!(future(body), None, "{body}");
        }
    }
}
