//! views
#![allow(missing_docs)]
mod cg;
mod cpu_time;

fn main() {
    if std::env::args().any(|argument| argument == "--list") {
        return;
    }
    let steps = 60;
    let a = cg::laplacian();
    let mut ratios = vec![];
    for _ in 0..8 {
        let (hand, x) = cg::by_hand(&a, steps);
        let (ours, y) = cg::ours(&a, steps).unwrap();
        assert!(x == y, "cg");
        let r = ours.cpu.as_secs_f64() / hand.cpu.as_secs_f64();
        ratios.push(r);
        println!("hand {:?} ours {:?} ratio cpu {:.2}", hand, ours, r);
    }
    ratios.sort_by(f64::total_cmp);
    println!("median {:.3} least {:.3}", ratios[4], ratios[0]);
}
